"""Jobs `reference` and `candidate`: what a validation asks of its two processes, and what they answer.

A `CandidateArguments` or `ReferenceArguments` starts a process, which then takes requests.
"""

from dataclasses import dataclass, field
from typing import Literal, TypedDict

from . import Case, Failure, Target
from .observation import Observation, SandboxViolation, Traces
from .statistics import CaseStatistics

# Job `reference`.


@dataclass(frozen=True, kw_only=True)
class ExchangeSetting:
    """Where the jobs of one validation pass tensors to each other, and how both sides are called."""

    folder: str
    device: str
    backward: bool


class ReferenceArguments(TypedDict):
    target: Target
    candidate: Target
    """The first that will be compared: where one file holds both, the reference loads its own part of it."""
    setting: ExchangeSetting
    state_seed: int


@dataclass(frozen=True, kw_only=True)
class StageRequest:
    do: Literal["stage"] = "stage"
    name: str
    """The candidate's name in the exchange folder."""
    candidate: Target


@dataclass(frozen=True, kw_only=True)
class PrepareRequest:
    do: Literal["prepare"] = "prepare"
    name: str
    case: Case


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    do: Literal["compare"] = "compare"
    name: str
    id: str
    seed: int
    side: str
    """The candidate's name in the exchange folder."""
    digests: tuple[str, ...]
    """Of the case's inputs and of the candidate's files."""


@dataclass(frozen=True, kw_only=True)
class ForgetRequest:
    do: Literal["forget"] = "forget"
    name: str
    id: str


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    do: Literal["measure"] = "measure"
    name: str
    case: Case


ReferenceRequest = StageRequest | PrepareRequest | CompareRequest | ForgetRequest | MeasureRequest


@dataclass(frozen=True, kw_only=True)
class ReferenceLoadedItem:
    event: Literal["reference_loaded"] = "reference_loaded"
    name: str
    device: str
    free_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class StagedItem:
    event: Literal["staged"] = "staged"
    digest: str


@dataclass(frozen=True, kw_only=True)
class PreparedItem:
    event: Literal["prepared"] = "prepared"
    digest: str
    aliases: frozenset[tuple[str, str]]
    """The reference's own outputs, each with the output or input whose memory it shares."""


@dataclass(frozen=True, kw_only=True)
class MeasuredItem:
    event: Literal["measured"] = "measured"
    elements: tuple[int, ...]
    """Of each value that the reference computed, intermediate results included, each number once."""


@dataclass(frozen=True, kw_only=True)
class ComparedItem:
    event: Literal["compared"] = "compared"
    statistics: CaseStatistics


@dataclass(frozen=True, kw_only=True)
class ForgottenItem:
    event: Literal["forgotten"] = "forgotten"


@dataclass(frozen=True, kw_only=True)
class ReferenceRaisedItem:
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


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """How kernels are compiled, whatever their launches say."""

    environment: dict[str, str] = field(default_factory=dict)
    """Variables that Triton reads when it compiles."""
    one_stage: bool = False
    """No loop is pipelined: num_stages=1."""
    other_warps: bool = False
    """num_warps=4, and 1 in the place of 4."""


@dataclass(frozen=True, kw_only=True)
class CandidateSetting(ExchangeSetting):
    side: str
    """The candidate's name in the exchange folder."""
    compilation: Compilation | None
    """None: as launches say."""


class CandidateArguments(TypedDict):
    target: Target
    setting: CandidateSetting
    secret: list[str]
    """Files and folders that the candidate must not read."""
    red_zone_bytes: int | None
    """None: what suits the device; 0: no red zones."""


@dataclass(frozen=True, kw_only=True)
class CandidateRequest:
    id: str
    name: str
    large_stride: tuple[str, ...]
    """Names of the tensors with huge strides."""
    twice: bool
    """Whether a second run must give the same bits."""
    again: str | None = None
    """The id of the case before it, whose tensors are called with once more."""
    configuration: int
    """Which one autotuned kernels take (inputs/case.py)."""
    undo_trials: bool = False
    """Whether what they do on trial is undone before the launch that counts."""


@dataclass(frozen=True, kw_only=True)
class CandidateLoadedItem:
    event: Literal["candidate_loaded"] = "candidate_loaded"
    name: str
    traces: Traces


@dataclass(frozen=True, kw_only=True)
class ViolationItem:
    """Comes at once, whatever happens to the process afterwards."""

    event: Literal["violation"] = "violation"
    violation: SandboxViolation


@dataclass(frozen=True, kw_only=True)
class ReturnedItem:
    event: Literal["returned"] = "returned"
    case: str
    observation: Observation


@dataclass(frozen=True, kw_only=True)
class RaisedItem:
    event: Literal["raised"] = "raised"
    case: str
    failure: Failure
    observation: Observation


CandidateItem = CandidateLoadedItem | ViolationItem | ReturnedItem | RaisedItem


@dataclass(frozen=True, kw_only=True)
class CandidateAnswer:
    traces: Traces
