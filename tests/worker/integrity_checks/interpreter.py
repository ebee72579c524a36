"""Replaced pieces of Triton's interpreter are found; the memory guard is none."""

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton.runtime import interpreter

from pytorch_to_triton.worker.integrity.operators import Launches, Operators
from pytorch_to_triton.worker.integrity.settings import Patches
from pytorch_to_triton.worker.interpreter.memory_guard import MemoryGuard
from pytorch_to_triton.worker.replacement import replaced


@triton.jit
def exp_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.exp(tl.load(x_ptr)))


def names(patches: Patches) -> list[str]:
    return [patch.name for patch in patches.changed()]


def replaced_pieces_of_the_interpreter_are_found() -> None:
    place = interpreter.__name__
    places: tuple[tuple[Any, str, str], ...] = (
        (interpreter, "np", f"{place}.np"),
        (native, "load", f"{native.__name__}.load"),
        (np, "exp", "numpy.exp"),
        (tl.tensor, "__add__", "triton.language.core.tensor.__add__"),
    )
    for owner, name, full in places:
        patches = Patches()
        with replaced(owner, name, lambda *args, **kwargs: None):
            assert full in names(patches), full


def the_memory_guard_is_no_patch() -> None:
    patches, x, out = Patches(), torch.ones(1), torch.empty(1)
    guard = MemoryGuard(lambda: iter(()))
    with Operators() as operators, Launches(operators), guard.watching():
        exp_kernel[(1,)](x, out)
    assert names(patches) == []
