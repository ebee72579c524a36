"""Jobs `reference`, `candidate` and `front_end`: what a validation asks of processes, and what they answer.

Each of the first two loads its side, then takes requests.
"""

from dataclasses import field

from . import Case, Failure, Json, Target
from .as_json import NamedValue, WireValue
from .comparison import Unordered
from .observation import Observation, SandboxViolation, Traces
from .statistics import CaseStatistics

KERNEL = "; kernel "
"""In job `candidate` a phase is a case's name; where an interpreted kernel runs, this and its name follow."""
PROGRAMS = "; programs "
"""Behind that, while many programs of a launch run one after the other: `40210 of 70000` that have ended."""

# Job `reference`.


class ExchangeSetting(WireValue):
    """Where the jobs of one validation pass tensors to each other, and how both sides are called."""

    folder: str
    device: str
    backward: bool


class StageRequest(NamedValue):
    name: str
    """The candidate's name in the exchange folder."""
    candidate: Target


class PrepareRequest(NamedValue):
    name: str
    case: Case
    unordered: tuple[Unordered, ...]


class CompareRequest(NamedValue):
    name: str
    id: str
    seed: int
    side: str
    """The candidate's name in the exchange folder."""
    digests: tuple[str, ...]
    """Of the case's inputs and of the candidate's files."""
    unordered: tuple[Unordered, ...]


class ForgetRequest(NamedValue):
    name: str
    id: str


class MeasureRequest(NamedValue):
    name: str
    case: Case


ReferenceRequest = StageRequest | PrepareRequest | CompareRequest | ForgetRequest | MeasureRequest


class ReferenceLoadedItem(NamedValue):
    name: str
    description: Json | None
    """schema/description.py; None for a file with get_inputs(), which another process runs."""
    device: str
    free_bytes: int | None


class StagedItem(NamedValue):
    digest: str


class PreparedItem(NamedValue):
    digest: str
    aliases: frozenset[tuple[str, str]]
    """The reference's own outputs, each with the output or input whose memory it shares."""
    draws: bool
    """Whether the reference draws random numbers."""


class MeasuredItem(NamedValue):
    elements: tuple[int, ...]
    """Of each value that the reference computed, intermediate results included, each number once."""


class ComparedItem(NamedValue):
    statistics: CaseStatistics


class ForgottenItem(NamedValue):
    """All bytes of the case are removed."""


class ReferenceRaisedItem(NamedValue):
    failure: Failure


ReferenceItem = (
    ReferenceLoadedItem
    | StagedItem
    | PreparedItem
    | ComparedItem
    | ForgottenItem
    | MeasuredItem
    | ReferenceRaisedItem
)


# Job `candidate`.


class Compilation(WireValue):
    """How kernels are compiled, whatever their launches say."""

    environment: dict[str, str] = field(default_factory=dict)
    """Variables that Triton reads when it compiles."""
    one_stage: bool = False
    """No loop is pipelined: num_stages=1."""
    other_warps: bool = False
    """num_warps=4, and 1 in the place of 4."""


class CandidateSetting(ExchangeSetting):
    side: str
    """The candidate's name in the exchange folder."""
    compilation: Compilation | None
    """None: as launches say."""


class CandidateRequest(WireValue):
    id: str
    name: str
    large_stride: tuple[str, ...]
    """Names of the tensors with huge strides."""
    twice: bool = False
    """Whether a second run must give the same bits."""
    without_gradients: bool = False
    """Whether a call that asks for no gradients must be right too."""
    again: str | None = None
    """The id of the case before it, whose tensors are called with once more."""
    configuration: int
    """Which one autotuned kernels take (inputs/case.py)."""
    undo_trials: bool = False
    """Whether what they do on trial is undone before the launch that counts."""


class CandidateLoadedItem(NamedValue):
    name: str
    description: Json
    """schema/description.py."""
    traces: Traces


class ViolationItem(NamedValue):
    """Comes at once, whatever happens to the process afterwards."""

    violation: SandboxViolation


class ReturnedItem(NamedValue):
    case: str
    observation: Observation


class RaisedItem(NamedValue):
    case: str
    failure: Failure
    observation: Observation


CandidateItem = CandidateLoadedItem | ViolationItem | ReturnedItem | RaisedItem


class CandidateAnswer(WireValue):
    traces: Traces


# Job `front_end`.


class CompilerRefusal(WireValue):
    """A line of a kernel that Triton's compiler does not take."""

    kernel: str
    file: str
    line: int
    source: str
    message: str


class FrontEndAnswer(WireValue):
    refusal: CompilerRefusal | None
