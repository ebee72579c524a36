"""The folder through which the jobs of one validation pass tensors to each other.

state/            the module's parameters and buffers, once
inputs/CASE/      what every call of the case is given
truth/CASE/       the reference's outputs in float64
nearby/CASE/      the same for inputs moved by one rounding error
pytorch/CASE/     the reference's outputs at the case's own dtypes
candidate/CASE/   the candidate's outputs
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .tensors import leaves, read_values, storage_bytes

PLACES = ("inputs", "truth", "nearby", "pytorch", "candidate")
AFTER_THE_CALL = " after the call"
"""Added to the name of an argument that was written to, and so is an output too."""


@dataclass(frozen=True)
class Call:
    """What one call is given: arguments in the declaration's order, and a module's state."""

    arguments: dict[str, Any]
    state: dict[str, Any]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every tensor of the call by name; the items of a list as `name[i]`."""
        named = {**self.arguments, **self.state}
        found = (leaf for name, value in named.items() for leaf in leaves(value, name))
        return {path: leaf for path, leaf in found if isinstance(leaf, torch.Tensor)}


@dataclass(frozen=True)
class Exchange:
    """The exchange folder of one validation."""

    folder: Path

    def case(self, place: str, case_id: str) -> Path:
        """Where `place` keeps a case."""
        return self.folder / place / case_id

    @property
    def state(self) -> Path:
        """Where the module's state lies."""
        return self.folder / "state"

    def call(self, case_id: str, device: str) -> Call:
        """What the case is called with, in fresh memory."""
        arguments = read_values(self.case("inputs", case_id), device)
        return Call(arguments, following(read_values(self.state, device), arguments))

    def forget(self, case_id: str) -> None:
        """Remove all bytes of a case."""
        for place in PLACES:
            shutil.rmtree(self.case(place, case_id), ignore_errors=True)


def following(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The state in the dtype of the first floating input, where no tensor of the state has that dtype."""
    inputs = [leaf for value in arguments.values() for _, leaf in leaves(value)]
    dtypes = [leaf.dtype for leaf in inputs if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    if not dtypes or any(value.dtype == dtypes[0] for value in state.values()):
        return dict(state)
    return {
        name: value.to(dtypes[0]) if value.is_floating_point() else value for name, value in state.items()
    }


def written_to(call: Call, before: Call) -> dict[str, torch.Tensor]:
    """The tensors of `call` whose storage differs from the one in `before`, bit for bit."""
    originals = {name: storage_bytes(tensor) for name, tensor in before.tensors().items()}
    tensors = call.tensors().items()
    return {name: tensor for name, tensor in tensors if not storage_bytes(tensor).equal(originals[name])}


def all_outputs(result: Any, call: Call, written: list[str]) -> list[tuple[str, Any]]:
    """What a call gives back: its result, flattened, and the arguments that it wrote to."""
    tensors = call.tensors()
    return [*leaves(result), *((f"{name}{AFTER_THE_CALL}", tensors[name]) for name in written)]
