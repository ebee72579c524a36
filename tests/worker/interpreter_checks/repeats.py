"""A launch right after the same one on trial is not run where that would leave all as it is."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pytorch_to_triton.worker.interpreter.memory_guard import MemoryGuard, spare_repeat

TOUCHED = -1.0


def is_run_again(kernel: Any, x: Tensor, out: Tensor, *then: Tensor) -> bool:
    """Whether a launch runs that follows one on trial; with the same tensors, or `then` with others."""
    with MemoryGuard(lambda: ()).watching():
        kernel[(1,)](x, out, 8)
        spare_repeat()
        out.fill_(TOUCHED)
        kernel[(1,)](*(then or (x, out)), 8)
    return not bool((out == TOUCHED).all())


@triton.jit
def doubled(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)


@triton.jit
def added(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(out_ptr + i) + tl.load(x_ptr + i))


@triton.jit
def added_by_atomics(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + i))


def what_reads_nothing_that_it_writes_is_not_run_again() -> None:
    assert not is_run_again(doubled, torch.ones(8), torch.zeros(8))


def what_reads_its_own_output_is_run_again() -> None:
    assert is_run_again(added, torch.ones(8), torch.zeros(8))
    assert is_run_again(added_by_atomics, torch.ones(8), torch.zeros(8))


def what_writes_to_the_storage_of_an_input_is_run_again() -> None:
    shared = torch.ones(16)
    assert is_run_again(doubled, shared[:8], shared[8:])


def a_launch_with_other_tensors_is_run() -> None:
    x, out = torch.ones(8), torch.zeros(8)
    assert is_run_again(doubled, x, out, torch.ones(8), out)


def only_the_launch_right_after_it_is_spared() -> None:
    x, out = torch.ones(8), torch.zeros(8)
    with MemoryGuard(lambda: ()).watching():
        doubled[(1,)](x, out, 8)
        spare_repeat()
        for _ in range(2):
            out.fill_(TOUCHED)
            doubled[(1,)](x, out, 8)
    assert bool((out == 2.0).all())
