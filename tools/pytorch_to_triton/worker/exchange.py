"""The folder through which the jobs of one validation pass tensors to each other.

staged/           the files that each side may load (staging.py)
state/            the module's parameters and buffers, once
inputs/CASE/      what every call of the case is given
candidate/CASE/   the candidate's outputs, and below second/ those of a second run, if they were other bits

What is expected of the candidate is never written anywhere: it is computed after the candidate has run.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .tensors import leaves, read_values, storage_bytes, write_values

AFTER_THE_CALL = " after the call"
"""Added to the name of an argument that was written to, and so is an output too."""
PLACES = ("inputs", "candidate")


@dataclass(frozen=True)
class Call:
    """What one call is given: arguments in the declaration's order, and a module's state."""

    arguments: dict[str, Any]
    state: dict[str, Any]
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    """The gradients of the outputs that a backward pass starts from, by output path."""

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

    def second_run(self, case_id: str) -> Path:
        """Where the candidate's outputs of a second run lie, if they were other bits."""
        return self.case("candidate", case_id) / "second"

    @property
    def state(self) -> Path:
        """Where the module's state lies."""
        return self.folder / "state"

    @property
    def staged(self) -> Path:
        """Where the files lie that the sides load."""
        return self.folder / "staged"

    def put(self, case_id: str, call: Call) -> None:
        """Write what the case is called with, but for the state."""
        folder = self.case("inputs", case_id)
        write_values(call.arguments, folder)
        write_values(call.cotangents, folder / "cotangents")

    def call(self, case_id: str, device: str) -> Call:
        """What the case is called with, in fresh memory."""
        folder = self.case("inputs", case_id)
        arguments = read_values(folder, device)
        state = following(read_values(self.state, device), arguments)
        return Call(arguments, state, read_values(folder / "cotangents", device))

    def digest(self, case_id: str) -> str:
        """Of all bytes that the case is called with, and of the files loaded: a change is found out."""
        total = hashlib.sha256()
        for folder in (self.case("inputs", case_id), self.state, self.staged):
            for file in sorted(folder.rglob("*.*")):
                with file.open("rb") as opened:
                    total.update(hashlib.file_digest(opened, "sha256").digest())
        return total.hexdigest()

    def forget(self, case_id: str) -> None:
        """Remove all bytes of a case."""
        for place in PLACES:
            shutil.rmtree(self.case(place, case_id), ignore_errors=True)

    def write_staging(self, staging: Mapping[str, Mapping[str, str]]) -> None:
        """By side, the staged copy of each file."""
        self.staged.mkdir(parents=True, exist_ok=True)
        (self.staged / "staging.json").write_text(json.dumps(staging))

    def read_staging(self, side: str) -> dict[str, str]:
        """The staged copy of each file that `side` loads."""
        staged: dict[str, str] = json.loads((self.staged / "staging.json").read_text())[side]
        return staged


def following(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The state in the dtype of the first floating input, where no tensor of the state has that dtype."""
    inputs = [leaf for value in arguments.values() for _, leaf in leaves(value)]
    dtypes = [leaf.dtype for leaf in inputs if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    if not dtypes or any(value.dtype == dtypes[0] for value in state.values()):
        return dict(state)
    return {
        name: value.to(dtypes[0]) if value.is_floating_point() else value for name, value in state.items()
    }


def written_to(call: Call, before: Call) -> list[str]:
    """The names of the tensors of `call` that differ from those in `before`, bit for bit."""
    originals = before.tensors()
    return [name for name, tensor in call.tensors().items() if not same_bits(tensor, originals[name])]


def same_bits(tensor: torch.Tensor, original: torch.Tensor) -> bool:
    """Whether nothing was written: the whole storage where both have one alike, else the elements."""
    if tensor.untyped_storage().nbytes() == original.untyped_storage().nbytes():
        return bool(storage_bytes(tensor).equal(storage_bytes(original)))
    ours, theirs = (t.detach().contiguous().clone() for t in (tensor, original))
    return bool(storage_bytes(ours).equal(storage_bytes(theirs)))


def all_outputs(returned: Mapping[str, Any], call: Call, written: list[str]) -> dict[str, Any]:
    """What a call gives back by path: the leaves that it returned, and the arguments that it wrote to."""
    tensors = call.tensors()
    return {**returned, **{f"{name}{AFTER_THE_CALL}": tensors[name] for name in written}}


def mapped(call: Call, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Call:
    """The call with `change` applied to every tensor, given its name; cotangents stay."""

    def visit(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(name, value)
        return (
            [visit(f"{name}[{i}]", item) for i, item in enumerate(value)]
            if isinstance(value, list)
            else value
        )

    return Call(
        {name: visit(name, value) for name, value in call.arguments.items()},
        {name: visit(name, value) for name, value in call.state.items()},
        call.cotangents,
    )
