"""Jobs `reference` and `candidate`: what a validation asks of its two processes, and what they answer.

Each job loads its side, then takes requests.
"""

from dataclasses import field
from typing import Literal

from . import Case, Failure, Json, Target
from .as_json import WireValue
from .observation import Observation, SandboxViolation, Traces
from .statistics import CaseStatistics

# Job `reference`.


class ExchangeSetting(WireValue):
    """Where the jobs of one validation pass tensors to each other, and how both sides are called."""

    folder: str
    device: str
    backward: bool


class StageRequest(WireValue):
    do: Literal["stage"] = "stage"
    name: str
    """The candidate's name in the exchange folder."""
    candidate: Target


class PrepareRequest(WireValue):
    do: Literal["prepare"] = "prepare"
    name: str
    case: Case


class CompareRequest(WireValue):
    do: Literal["compare"] = "compare"
    name: str
    id: str
    seed: int
    side: str
    """The candidate's name in the exchange folder."""
    digests: tuple[str, ...]
    """Of the case's inputs and of the candidate's files."""


class ForgetRequest(WireValue):
    do: Literal["forget"] = "forget"
    name: str
    id: str


class MeasureRequest(WireValue):
    do: Literal["measure"] = "measure"
    name: str
    case: Case


ReferenceRequest = StageRequest | PrepareRequest | CompareRequest | ForgetRequest | MeasureRequest


class ReferenceLoadedItem(WireValue):
    event: Literal["reference_loaded"] = "reference_loaded"
    name: str
    description: Json | None
    """schema/description.py; None for a file with get_inputs(), which another process runs."""
    device: str
    free_bytes: int | None


class StagedItem(WireValue):
    event: Literal["staged"] = "staged"
    digest: str


class PreparedItem(WireValue):
    event: Literal["prepared"] = "prepared"
    digest: str
    aliases: frozenset[tuple[str, str]]
    """The reference's own outputs, each with the output or input whose memory it shares."""


class MeasuredItem(WireValue):
    event: Literal["measured"] = "measured"
    elements: tuple[int, ...]
    """Of each value that the reference computed, intermediate results included, each number once."""


class ComparedItem(WireValue):
    event: Literal["compared"] = "compared"
    statistics: CaseStatistics


class ForgottenItem(WireValue):
    event: Literal["forgotten"] = "forgotten"


class ReferenceRaisedItem(WireValue):
    event: Literal["reference_raised"] = "reference_raised"
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


class CandidateLoadedItem(WireValue):
    event: Literal["candidate_loaded"] = "candidate_loaded"
    name: str
    description: Json
    """schema/description.py."""
    traces: Traces


class ViolationItem(WireValue):
    """Comes at once, whatever happens to the process afterwards."""

    event: Literal["violation"] = "violation"
    violation: SandboxViolation


class ReturnedItem(WireValue):
    event: Literal["returned"] = "returned"
    case: str
    observation: Observation


class RaisedItem(WireValue):
    event: Literal["raised"] = "raised"
    case: str
    failure: Failure
    observation: Observation


CandidateItem = CandidateLoadedItem | ViolationItem | ReturnedItem | RaisedItem


class CandidateAnswer(WireValue):
    traces: Traces
