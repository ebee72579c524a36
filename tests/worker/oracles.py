"""An oracle for a function or module of a test, with a case of the given arguments."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from pytorch_to_triton.worker.calls.exchange import CallInputs, Exchange
from pytorch_to_triton.worker.calls.tensors import Outputs, output_of, write_values
from pytorch_to_triton.worker.loading.target import Loaded, ModuleCall
from pytorch_to_triton.worker.truth.oracle import Oracle, ReferenceRun, Truth

CASE, SEED = "case", 7


def loaded(reference: Callable[..., Any] | nn.Module) -> Loaded:
    """The reference as if it came from a file."""
    file, contents = Path(__file__), ModuleType("reference")
    if isinstance(reference, nn.Module):
        signature, name = inspect.signature(reference.forward), type(reference).__name__
        return Loaded(
            "module", name, file, contents, signature, ModuleCall(reference, signature.parameters), reference
        )
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


def values(outputs: Truth | Outputs, path: str = "out") -> torch.Tensor:
    """What the truth is at `path`, or outputs are."""
    tensor = (outputs.precise if isinstance(outputs, Truth) else outputs)[path].tensor
    assert tensor is not None
    return tensor


@dataclass(frozen=True)
class StatedTruth(Truth):
    """A truth without a reference: whatever else is asked for is what a test has stated, or the truth."""

    others: Mapping[str, Outputs] = field(default_factory=dict)

    def sample(self, number: int) -> Outputs:
        return self.others.get("sample", self.precise)

    def rounding(self, number: int) -> Outputs:
        return self.others.get("rounding", self.precise)

    def elsewhere(self) -> Outputs:
        return self.others.get("elsewhere", {})

    def following(self, candidate: Outputs) -> None:
        return None


def stated_truth(
    pytorch: torch.Tensor, exact: torch.Tensor, path: str = "out", **others: torch.Tensor
) -> Truth:
    """Of one output, beside what PyTorch makes of it; `others`: a further `sample` and the like."""
    leaf = {path: output_of(exact)}
    run = ReferenceRun(CASE, SEED, {path: output_of(pytorch)}, [], [], ())
    nowhere = Oracle(loaded(nn.Identity()), Exchange(Path(os.devnull)), "cpu", backward=False)
    stated = {name: {path: output_of(values)} for name, values in others.items()}
    return StatedTruth(nowhere, run, "declared", leaf, leaf, others=stated)
