"""Everything that is observed while a candidate runs, beside what it returns."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .calls.exchange import CallInputs
from .guarded_memory import GuardedMemory
from .integrity.operators import Launches, Operators, Readings
from .integrity.returned_tensors import aliases
from .integrity.sandbox import Sandbox
from .integrity.settings import Leftovers, Patches, SettingsSnapshot
from .interpreter.bounds import Range
from .interpreter.launching import Order
from .interpreter.memory_guard import MemoryGuard
from .interpreter.syntax import most_turns
from .loading.redirect import original
from .runtime import as_on_a_gpu, interpreting
from .wire.as_json import decoded
from .wire.observation import Observation, SandboxViolation, Traces


@dataclass
class CallObservation:
    """What was observed during one call."""

    operators: Operators
    launches: Launches
    guard: MemoryGuard

    def seen(self, outputs: Mapping[str, Any], call: CallInputs, memory: GuardedMemory) -> Observation:
        """What was seen; `outputs` are the leaves that the call returned, by path."""
        tensors = {path: leaf for path, leaf in outputs.items() if isinstance(leaf, torch.Tensor)}
        for path, tensor in tensors.items():
            memory.named(tensor, path)
        # The gradient of a sum is the gradient that came in: there is nothing to compute.
        passed_on = {output for output, _ in aliases(tensors.items(), call.cotangents.items())}
        records = {
            "operators": self.operators.counts,
            "launches": self.launches.launched,
            "origins": {p: self.origins(t) for p, t in tensors.items() if p not in passed_on},
            "reads_kernels": self.operators.reads_kernels,
            "faults": [in_original_file(fault) for fault in self.guard.faults],
            "loops": [in_original_file(loop) for loop in most_turns()],
            "strided": [in_original_file(block) for block in self.guard.strided.values()],
            "overruns": memory.overruns(),
            "aliases": aliases(tensors.items(), call.tensors().items()),
        }
        observation: Observation = decoded(Observation, records)
        return observation

    def origins(self, tensor: torch.Tensor) -> list[str] | None:
        """What made it where no Triton kernel was given it; None where one was, or where it holds nothing."""
        if tensor.numel() == 0 or self.operators.pointers_given:
            return None
        # A kernel may have found the tensor through a pointer in another one.
        stored = self.guard.has_stored(tensor) and not self.operators.is_overwritten(tensor)
        if stored or self.operators.made_by_triton(tensor):
            return None
        return sorted(self.operators.origins(tensor))


class Observer:
    """Observes one candidate's process from before its file is loaded."""

    def __init__(
        self, secret: list[Path], kept: list[Path], report: Callable[[SandboxViolation], None]
    ) -> None:
        self.sandbox = Sandbox(secret, kept, report)
        self.patches = Patches()
        self.flags = SettingsSnapshot()
        self.leftovers = Leftovers()

    @contextmanager
    def calling(
        self, memory: GuardedMemory, call: CallInputs, order: Order = "forward"
    ) -> Iterator[CallObservation]:
        """While the candidate is called once; interpreted programs run in the given order."""
        guard = MemoryGuard(lambda: (Range(*bounds) for bounds in memory.ranges()), order)
        # The interpreter knows what a kernel wrote to; on a device only what it was given is known.
        given = (*call.tensors().values(), *call.cotangents.values())
        operators = Operators(given, guard.has_stored if interpreting() else None)
        observation = CallObservation(operators, Launches(operators), guard)
        with ExitStack() as stack:
            stack.enter_context(self.sandbox.watching())
            stack.enter_context(as_on_a_gpu())
            stack.enter_context(memory.intercepting())
            stack.enter_context(observation.launches)
            if interpreting():
                stack.enter_context(guard.watching())
            stack.enter_context(Readings(operators.counts))
            stack.enter_context(operators)
            try:
                yield observation
            finally:
                self.flags.note()

    def traces(self) -> Traces:
        """What the candidate has changed in this process so far, and what it was refused."""
        return Traces(
            sandbox_violations=tuple(self.sandbox.violations),
            patches=self.patches.changed(),
            flags=self.flags.changed(),
            leftovers=self.leftovers.running(),
        )


def in_original_file(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the file that the user knows, not the staged copy."""
    return {**record, "file": str(original(record["file"]))} if record.get("file") else record
