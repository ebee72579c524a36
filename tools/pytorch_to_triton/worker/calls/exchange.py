"""The folder through which the jobs of one validation exchange tensors.

staged/SIDE/        the files that one side may load (staging.py)
state/              the module's parameters and buffers, once
inputs/CASE/        what every call of the case is given
outputs/SIDE/CASE/  a candidate's outputs, a folder a run

A side is the reference or one of the candidates: several may be compared with one reference.

What is expected of the candidate is never written anywhere: it is computed after the candidate has run.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..allocation import storage_bytes
from ..integrity.returned_tensors import plain
from ..loading.target import Loaded
from ..wire.statistics import Run
from .tensors import Outputs, output_of, read_values, write_values

AFTER_THE_CALL = " after the call"
"""Added to the name of an argument that was written to, and so is an output too."""
REFERENCE = "reference"
"""The side that computes what is expected."""


@dataclass(frozen=True)
class CallInputs:
    """The inputs of one call: arguments in the declaration's order, and a module's state.

    A Packing among the arguments says how a parameter is made of those before it.
    """

    arguments: dict[str, Any]
    state: dict[str, Any]
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    """The gradients of the outputs that a backward pass starts from, by output path."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every tensor of the call by name."""
        named = {**self.arguments, **self.state}
        return {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}


@dataclass(frozen=True)
class Exchange:
    """The exchange folder of one validation."""

    folder: Path

    def inputs(self, case_id: str) -> Path:
        """The folder of the case's inputs."""
        return self.folder / "inputs" / case_id

    def outputs(self, side: str, case_id: str, run: Run = "first") -> Path:
        """The folder of a candidate's outputs of a case; a second run has one if its bits differ."""
        return self.folder / "outputs" / side / case_id / run

    @property
    def secret(self) -> list[Path]:
        """What a candidate must not read while it runs."""
        return [self.folder / "inputs", self.folder / "outputs"]

    @property
    def state(self) -> Path:
        """The folder of the module's state."""
        return self.folder / "state"

    def put_state(self, state: Mapping[str, torch.Tensor], unsaved: Sequence[str]) -> None:
        """Write the module's state, and which of it no state_dict has."""
        write_values(state, self.state)
        (self.state / "unsaved.json").write_text(json.dumps(unsaved))

    def with_state(self, candidate: Loaded) -> Loaded:
        """The candidate with that state. Raises StateMismatch."""
        unsaved = json.loads((self.state / "unsaved.json").read_text())
        return candidate.with_state(read_values(self.state, "cpu"), unsaved)

    @property
    def staged(self) -> Path:
        """The folder of the files that the sides load."""
        return self.folder / "staged"

    def put(self, case_id: str, call: CallInputs) -> None:
        """Write the case's inputs, but not the state."""
        folder = self.inputs(case_id)
        write_values(call.arguments, folder)
        if call.cotangents:
            write_values(call.cotangents, folder / "cotangents")

    def call(self, case_id: str, device: str) -> CallInputs:
        """The case's inputs, in fresh memory."""
        folder = self.inputs(case_id)
        arguments = read_values(folder, device)
        state = state_like_input(read_values(self.state, device), arguments)
        cotangents = folder / "cotangents"
        return CallInputs(arguments, state, read_values(cotangents, device) if cotangents.exists() else {})

    def digest(self, case_id: str) -> str:
        """Of all bytes of the case's inputs: it shows a change."""
        return digest_of(self.inputs(case_id), self.state)

    def forget(self, case_id: str) -> None:
        """Remove a case's inputs and outputs."""
        for folder in (self.inputs(case_id), *(self.folder / "outputs").glob(f"*/{case_id}")):
            shutil.rmtree(folder, ignore_errors=True)

    def write_staging(self, side: str, staged: Mapping[str, str]) -> str:
        """Record the staged copies of one side, by their originals; a digest of them all."""
        folder = self.staged / side
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "staging.json").write_text(json.dumps(staged))
        return self.staging_digest(side)

    def read_staging(self, side: str) -> dict[str, str]:
        """The staged copy of each file that `side` loads."""
        staged: dict[str, str] = json.loads((self.staged / side / "staging.json").read_text())
        return staged

    def staging_digest(self, side: str) -> str:
        """Of all files that the side loads: it shows a change."""
        return digest_of(self.staged / side)


def digest_of(*folders: Path) -> str:
    total = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.*")):
            with file.open("rb") as opened:
                total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()


def state_like_input(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The state in the dtype of the first floating input, where no tensor of the state has that dtype."""
    tensors = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
    dtypes = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    if not dtypes or any(value.dtype == dtypes[0] for value in state.values()):
        return dict(state)
    return {
        name: value.to(dtypes[0]) if value.is_floating_point() else value for name, value in state.items()
    }


def written_to(call: CallInputs, before: CallInputs) -> list[str]:
    """The names of the tensors of `call` that differ from those in `before`, bit for bit."""
    originals = before.tensors()
    return [name for name, tensor in call.tensors().items() if not same_bits(tensor, originals[name])]


def written_cotangents(call: CallInputs, before: CallInputs) -> list[str]:
    """The outputs whose given gradients differ from those in `before`."""
    return [path for path, given in call.cotangents.items() if not same_bits(given, before.cotangents[path])]


def same_bits(tensor: torch.Tensor, original: torch.Tensor) -> bool:
    """Whether both hold the same: the whole storage if both are of one size, else the elements.

    One NaN is as good as another: devices differ in the bits of those that they compute.
    """
    if tensor.untyped_storage().nbytes() != original.untyped_storage().nbytes():
        tensor, original = (t.detach().contiguous().clone() for t in (tensor, original))
    ours, theirs = storage_bytes(tensor), storage_bytes(original)
    itemsize = tensor.dtype.itemsize
    if ours.equal(theirs) or not tensor.dtype.is_floating_point or ours.numel() % itemsize:
        return bool(ours.equal(theirs))
    differ = (ours != theirs).view(-1, itemsize).any(dim=1)
    both = (side.view(tensor.dtype)[differ].double() for side in (ours, theirs))
    return all(bool(values.isnan().all()) for values in both)


def all_outputs(returned: Mapping[str, Any], call: CallInputs, written: list[str]) -> dict[str, Any]:
    """The outputs of a call by path: the leaves that it returned, and the arguments that it wrote to."""
    tensors = call.tensors()
    return {**returned, **{f"{name}{AFTER_THE_CALL}": tensors[name] for name in written}}


def outputs_of(returned: Mapping[str, Any], call: CallInputs, written: list[str]) -> Outputs:
    """Copies of `all_outputs`; a leaf that is no plain tensor has its type alone."""
    everything = all_outputs(returned, call, written)
    return {path: output_of(leaf, plain(leaf)) for path, leaf in everything.items()}


def map_tensors(call: CallInputs, change: Callable[[str, torch.Tensor], torch.Tensor]) -> CallInputs:
    """The call with `change` applied to every tensor, given its name; cotangents stay."""

    def visit(name: str, value: Any) -> Any:
        return change(name, value) if isinstance(value, torch.Tensor) else value

    return CallInputs(
        {name: visit(name, value) for name, value in call.arguments.items()},
        {name: visit(name, value) for name, value in call.state.items()},
        call.cotangents,
    )
