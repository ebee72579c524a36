"""Everything that is observed while a candidate runs, beside what it returns."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from .allocation import Poison
from .calls.exchange import CallInputs
from .concealment import Concealment
from .guarded_memory import GuardedMemory
from .integrity.operators import Launches, Operators, Readings
from .integrity.returned_tensors import aliases
from .integrity.sandbox import Sandbox
from .integrity.settings import Leftovers, Patches, SettingsSnapshot
from .interpreter.launching import Order
from .interpreter.memory_guard import MemoryGuard
from .interpreter.syntax import observed_loops
from .loading.redirect import original
from .random_numbers import DrawnByElement
from .reached_lines import ReachedLines
from .runtime import as_on_a_gpu, interpreting
from .wire.as_json import decoded
from .wire.observation import (
    MemoryFault,
    Observation,
    ObservedLaunch,
    ObservedLoop,
    ReachedFile,
    SandboxViolation,
    Strided,
    Traces,
)

Placed = TypeVar("Placed", MemoryFault, ObservedLoop, ReachedFile, Strided)


@dataclass(frozen=True)
class Circumstances:
    """What a call's results must not depend on."""

    order: Order = "forward"
    """In which interpreted programs run."""
    poison: Poison = Poison.FIRST
    """What memory holds that nothing was written to."""
    concealed: bool = False
    """Whether Python sees noise in place of what tensors hold; under the interpreter alone."""


USUAL = Circumstances()


@dataclass
class CallObservation:
    """What was observed during one call."""

    operators: Operators
    launches: Launches
    guard: MemoryGuard
    reached: ReachedLines

    def seen(self, outputs: Mapping[str, Any], call: CallInputs, memory: GuardedMemory) -> Observation:
        """What was seen; `outputs` are the leaves that the call returned, by path."""
        tensors = {path: leaf for path, leaf in outputs.items() if isinstance(leaf, torch.Tensor)}
        for path, tensor in tensors.items():
            memory.named(tensor, path)
        # The gradient of a sum is the gradient that came in: there is nothing to compute.
        passed_on = {output for output, _ in aliases(tensors.items(), call.cotangents.items())}
        origins = {p: self.origins(t) for p, t in tensors.items() if p not in passed_on}
        unmade = [path for path, made_by in origins.items() if made_by is not None]
        return Observation(
            operators=dict(self.operators.counts),
            launches=decoded(tuple[ObservedLaunch, ...], self.launches.launched),
            origins=origins,
            idle={path: idle for path in unmade if (idle := self.operators.idle_kernels(tensors[path]))},
            made=tuple(p for p in origins if p not in unmade and tensors[p].numel() > 0),
            reads_kernels=self.operators.reads_kernels,
            faults=tuple(map(in_original_file, self.guard.faults)),
            loops=tuple(map(in_original_file, observed_loops())),
            reached=tuple(
                in_original_file(ReachedFile(file=file, lines=tuple(sorted(lines))))
                for file, lines in self.reached.by_file.items()
            ),
            strided=tuple(map(in_original_file, self.guard.strided.values())),
            overruns=tuple(memory.overruns()),
            aliases=frozenset(aliases(tensors.items(), call.tensors().items())),
        )

    def origins(self, tensor: torch.Tensor) -> tuple[str, ...] | None:
        """What made it where no Triton kernel was given it; None where one was, or where it holds nothing."""
        if tensor.numel() == 0 or self.operators.pointers_given:
            return None
        # A kernel may have found the tensor through a pointer in another one.
        stored = self.guard.has_stored(tensor) and not self.operators.is_overwritten(tensor)
        if stored or self.operators.made_by_triton(tensor):
            return None
        return tuple(sorted(self.operators.origins(tensor)))


class Observer:
    """Observes one candidate's process from before its file is loaded."""

    def __init__(
        self,
        secret: list[Path],
        kept: list[Path],
        report: Callable[[SandboxViolation], None],
        announce: Callable[[Callable[..., Any] | None], None],
    ) -> None:
        """`announce` is called with each interpreted kernel before it runs, and with None after it."""
        self.announce = announce
        self.sandbox = Sandbox(secret, kept, report)
        self.patches = Patches()
        self.flags = SettingsSnapshot()
        self.leftovers = Leftovers()

    @contextmanager
    def calling(
        self, memory: GuardedMemory, call: CallInputs, circumstances: Circumstances = USUAL
    ) -> Iterator[CallObservation]:
        """While the candidate is called once."""
        guard = MemoryGuard(memory.ranges, circumstances.order)
        # The interpreter knows what a kernel wrote to; on a device only what it was given is known.
        given = (*call.tensors().values(), *call.cotangents.values())
        operators = Operators(given, guard.has_stored if interpreting() else None)
        reached = ReachedLines()

        def announce(kernel: Callable[..., Any] | None) -> None:
            reached.announce(kernel)
            self.announce(kernel)

        # On a device a launch returns before its kernel has run.
        launches = Launches(operators, announce if interpreting() else None)
        observation = CallObservation(operators, launches, guard, reached)
        with ExitStack() as stack:
            stack.enter_context(self.sandbox.watching())
            stack.enter_context(as_on_a_gpu())
            stack.enter_context(memory.intercepting())
            stack.enter_context(observation.launches)
            if interpreting():
                stack.enter_context(guard.watching())
            if circumstances.concealed:
                stack.enter_context(Concealment(memory).active())
            stack.enter_context(DrawnByElement())
            stack.enter_context(Readings(operators.counts))
            stack.enter_context(operators)
            try:
                with reached.following():
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


def in_original_file(seen: Placed) -> Placed:
    """The same in the file that the user knows, not in the staged copy."""
    return replace(seen, file=str(original(seen.file)))
