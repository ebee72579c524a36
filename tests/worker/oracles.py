"""An oracle for a function or module of a test, with a case of the given arguments."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from pytorch_to_triton.worker.calls.exchange import CallInputs, Exchange
from pytorch_to_triton.worker.calls.tensors import write_values
from pytorch_to_triton.worker.loading.target import Loaded, ModuleCall
from pytorch_to_triton.worker.truth.oracle import Oracle, Truth

CASE, SEED = "case", 7


def loaded(reference: Callable[..., Any] | nn.Module) -> Loaded:
    """The reference as if it came from a file."""
    file, contents = Path(__file__), ModuleType("reference")
    if isinstance(reference, nn.Module):
        signature, name = inspect.signature(reference.forward), type(reference).__name__
        return Loaded("module", name, file, contents, signature, ModuleCall(reference), reference)
    return Loaded("function", reference.__name__, file, contents, inspect.signature(reference), reference)


def oracle(
    reference: Callable[..., Any] | nn.Module,
    arguments: Mapping[str, Any],
    folder: Path,
    cotangents: Mapping[str, torch.Tensor] | None = None,
) -> Oracle:
    """With gradients where there are cotangents to start from."""
    exchange = Exchange(folder)
    target = loaded(reference)
    write_values(target.state, exchange.state)
    exchange.put(CASE, CallInputs(dict(arguments), {}, dict(cotangents or {})))
    return Oracle(target, exchange, "cpu", backward=cotangents is not None)


def truth_of(
    reference: Callable[..., Any] | nn.Module,
    arguments: Mapping[str, Any],
    folder: Path,
    cotangents: Mapping[str, torch.Tensor] | None = None,
) -> Truth:
    """Of the reference for these arguments."""
    return oracle(reference, arguments, folder, cotangents).truth(CASE, SEED)


def values(truth: Truth, path: str = "out") -> torch.Tensor:
    """What the truth is at `path`."""
    found = truth.precise[path].tensor
    assert found is not None
    return found
