"""What is observed of a candidate: job `candidate` answers with it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

from .as_json import WireValue

RefusedKind = Literal[
    "hides_operators", "tampers", "native_code", "inspects_the_process", "starts_processes", "network",
    "touches_files",
]  # fmt: skip
"""What the sandbox refuses, of schema/verdict.py's kinds of violations."""


class ObservedLaunch(WireValue):
    """A Triton kernel that was launched."""

    kernel: str
    file: str
    line: int
    count: int
    atomics: bool
    """Its source uses tl.atomic_*."""
    python: tuple[str, ...] = ()
    """What its source uses and the compiler would refuse, though the interpreter runs it."""


FaultKind = Literal["load_outside", "store_outside", "race", "missing_barrier", "false_promise"]


class MemoryFault(WireValue):
    """A load, store or promise to the compiler that no kernel may make, seen by the guarded interpreter."""

    kind: FaultKind
    kernel: str
    file: str
    line: int
    source: str
    tensor: str
    """Empty for a promise to the compiler."""
    offset: int
    """In elements, from the tensor's first one."""
    elements: int
    """How many the tensor's storage holds from there on."""
    count: int
    program: tuple[int, ...]
    detail: str
    strides_of: str = ""
    """Another argument of the launch whose strides lead to the address outside."""


class Strided(WireValue):
    """A block whose lanes lie a sector or more apart: each moves one of its own."""

    kernel: str
    file: str
    line: int
    tensor: str
    step_bytes: int
    """From lane to lane, along the axis where they lie nearest."""
    lanes: int


class Overrun(WireValue):
    """A red zone that was written to."""

    tensor: str
    side: str
    """`before`, `after`."""
    offset: int
    """Of the damaged element nearest to the storage, in elements from the storage's first."""
    elements: int
    """How many are damaged."""
    size: int
    """Elements in the storage."""


class ObservedLoop(WireValue):
    """A loop of an interpreted kernel."""

    file: str
    function: str
    line: int
    turns: int
    """Of its longest run so far."""


SecondRun = Literal["memory", "order", "reading", "chance"]
"""What results of a second run seem to depend on: what uninitialised memory held, the order in which the
programs of a launch ran (where that was the same, so were they), what Python reads of tensors past torch, or
none of these."""


class ReachedFile(WireValue):
    """Lines of a file of the author's that Python ran, outside of kernels."""

    file: str
    lines: tuple[int, ...]


class Differs(WireValue):
    """Outputs that had other bits in a second run on the same values."""

    paths: tuple[str, ...]
    by: SecondRun


class TunedKernel(WireValue):
    """The configuration that an autotuned kernel took."""

    kernel: str
    configuration: str
    """`BLOCK=256 num_warps=4 num_stages=3`; under the interpreter `BLOCK=256`."""
    of: int
    """How many it has."""
    unsettled: tuple[str, ...] = ()
    """Arguments that a second run changes once more; found out where trials are undone."""


class Observation(WireValue):
    """What was seen in one case."""

    operators: dict[str, int] = field(default_factory=dict)
    launches: tuple[ObservedLaunch, ...] = ()
    origins: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Of each tensor that was returned: `input` and the operators that made its values, copies left out; None
    where it is empty, or where a Triton kernel was given it."""
    idle: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of those that no kernel wrote to, the kernels that were given them all the same; on a device, where it
    is not known what a kernel writes, none."""
    made: tuple[str, ...] = ()
    """Those that a kernel wrote to, or on a device was given."""
    reads_kernels: bool = False
    """Whether Python was given the value of an element that a kernel made."""
    faults: tuple[MemoryFault, ...] = ()
    loops: tuple[ObservedLoop, ...] = ()
    reached: tuple[ReachedFile, ...] = ()
    strided: tuple[Strided, ...] = ()
    overruns: tuple[Overrun, ...] = ()
    aliases: frozenset[tuple[str, str]] = frozenset()
    """Outputs, each with an input or another output whose memory it shares."""
    aliases_of_reference: frozenset[tuple[str, str]] = frozenset()
    reference_draws: bool = False
    """Whether the reference draws random numbers there."""
    written: tuple[str, ...] = ()
    """Inputs that the call changed."""
    written_cotangents: tuple[str, ...] = ()
    """Outputs whose gradients the backward pass was given, and changed."""
    differs: Differs | None = None
    overwritten: tuple[str, ...] = ()
    """Outputs of the case before that this call changed."""
    tuned: tuple[TunedKernel, ...] = ()
    gradcheck: str | None = None
    """How the candidate's gradients fail torch.autograd.gradcheck."""

    def joined(self, other: Observation) -> Observation:
        """With what another call reached, and what its kernels did: launches, and how they used memory."""
        return replace(
            self,
            launches=(*self.launches, *other.launches),
            reached=(*self.reached, *other.reached),
            faults=(*self.faults, *other.faults),
            overruns=(*self.overruns, *other.overruns),
        )

    @property
    def configurations(self) -> tuple[str, ...]:
        """What its autotuned kernels took, each with the kernel's name."""
        return tuple(f"{tuned.configuration} of {tuned.kernel}" for tuned in self.tuned)


class SandboxViolation(WireValue):
    """Something that the candidate's code tried and was refused."""

    kind: RefusedKind
    what: str
    file: str | None = None
    line: int | None = None


class Patch(WireValue):
    """A function of torch, triton, Python or this worker that is another one now."""

    name: str
    now: str


class ChangedSetting(WireValue):
    """A setting of the whole process that has changed."""

    name: str
    before: str | int | float | None
    now: str | int | float | None


class Leftover(WireValue):
    """A thread or process that still runs."""

    kind: str
    name: str


class Traces(WireValue):
    """What a candidate left in its process."""

    sandbox_violations: tuple[SandboxViolation, ...] = ()
    patches: tuple[Patch, ...] = ()
    flags: tuple[ChangedSetting, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
