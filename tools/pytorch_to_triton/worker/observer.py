"""Everything that is observed while a candidate runs, beside what it returns."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .calls.exchange import CallInputs
from .guarded_memory import GuardedMemory
from .integrity.hooks import Hooks
from .integrity.launches import Launches
from .integrity.leftovers import Leftovers, adopt_orphans
from .integrity.operators import Operators
from .integrity.patches import Patches
from .integrity.readings import Readings
from .integrity.returned_tensors import aliases
from .integrity.sandbox import Sandbox
from .integrity.settings import SettingsSnapshot
from .interpreter.bounds import Range
from .interpreter.memory_guard import MemoryGuard
from .interpreter.program_order import Order
from .loading.redirect import original
from .runtime import as_on_a_gpu, interpreting
from .wire import Json


@dataclass
class CallObservation:
    """What was observed during one call."""

    operators: Operators
    launches: Launches
    guard: MemoryGuard
    hooks: list[str] = field(default_factory=list)
    """What would have run the author's code later; it has been removed."""

    def as_json(self, outputs: Mapping[str, Any], call: CallInputs, memory: GuardedMemory) -> Json:
        """For validate/observation.py; `outputs` are the leaves that the call returned, by path."""
        tensors = {path: leaf for path, leaf in outputs.items() if isinstance(leaf, torch.Tensor)}
        for path, tensor in tensors.items():
            memory.named(tensor, path)
        passed_on = {alias["output"] for alias in aliases(tensors.items(), call.cotangents.items())}
        return {
            "operators": dict(self.operators.counts),
            "launches": list(self.launches.launched),
            # The gradient of a sum is the gradient that came in: there is nothing to compute.
            "untouched": [p for p, t in tensors.items() if p not in passed_on and self.is_untouched(t)],
            "faults": [in_original_file(fault) for fault in self.guard.faults],
            "strided": [in_original_file(block) for block in self.guard.strided.values()],
            "overruns": memory.overruns(),
            "hooks": list(self.hooks),
            "aliases": aliases(tensors.items(), call.tensors().items()),
        }

    def is_untouched(self, tensor: torch.Tensor) -> bool:
        """Whether it holds something, and no Triton kernel was given it."""
        if tensor.numel() == 0 or self.operators.pointers_given:
            return False
        # A kernel may have found the tensor through a pointer in another one.
        stored = self.guard.has_stored(tensor) and not self.operators.is_overwritten(tensor)
        return not (stored or self.operators.made_by_triton(tensor))


class Observer:
    """Observes one candidate's process from before its file is loaded."""

    def __init__(self, secret: list[Path], kept: list[Path], report: Callable[[Json], None]) -> None:
        adopt_orphans()
        self.sandbox = Sandbox(secret, kept, report)
        self.patches = Patches()
        self.flags = SettingsSnapshot()
        self.leftovers = Leftovers()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """While the candidate's file is imported and its module constructed."""
        with self.sandbox.watching():
            yield

    @contextmanager
    def calling(
        self, memory: GuardedMemory, call: CallInputs, order: Order = "forward"
    ) -> Iterator[CallObservation]:
        """While the candidate is called once; interpreted programs run in the given order."""
        guard = MemoryGuard(lambda: (Range(*found) for found in memory.ranges()), order)
        # The interpreter knows what a kernel wrote to; on a device only what it was given is known.
        operators = Operators(call.tensors().values(), guard.has_stored if interpreting() else None)
        at_launch = self.patches.note_interpreter if interpreting() else lambda: None
        observation = CallObservation(operators, Launches(operators, at_launch), guard)
        with ExitStack() as stack:
            stack.enter_context(self.sandbox.watching())
            stack.enter_context(as_on_a_gpu())
            stack.enter_context(memory.intercepting())
            stack.enter_context(observation.launches)
            if interpreting():
                stack.enter_context(guard.watching())
            stack.enter_context(Readings(operators.counts))
            stack.enter_context(operators)
            hooks = Hooks()
            try:
                yield observation
            finally:
                observation.hooks = hooks.remove()

    def traces(self) -> Json:
        """What the candidate has changed in this process so far, and what it was refused."""
        return {
            "sandbox_violations": [in_original_file(found) for found in self.sandbox.violations],
            "patches": self.patches.changed(),
            "flags": self.flags.changed(),
            "leftovers": self.leftovers.found(),
        }


def in_original_file(record: Json) -> Json:
    """The record with the file that the user knows, not the staged copy."""
    return {**record, "file": str(original(record["file"]))} if record.get("file") else record
