"""The types of everything that crosses the border between the tools and the worker's processes.

All of it is plain JSON. Every item, reply and line has an `event`, every request of job `reference` a `do`:
readers branch on these tags. The tools import this file for type checking alone; it imports nothing itself.
"""

from typing import Any, Literal, TypedDict

Json = dict[str, Any]
"""An object whose fields are described elsewhere."""
Case = dict[str, Any]
"""inputs/case.py as JSON, with a `seed`, and with an `id` where it has a folder in the exchange folder."""


class Target(TypedDict):
    """schema/target.py."""

    path: str
    name: str | None
    init: list[str]


class Failure(TypedDict):
    """schema/job.py: an exception, as far as a person needs it."""

    type: str
    message: str
    traceback: str
    file: str | None
    line: int | None
    statement: str
    during: str


# What a job says, and the fork server says about it.


class ItemMessage(TypedDict):
    event: Literal["item"]
    item: Json


class ProgressMessage(TypedDict):
    event: Literal["progress"]
    done: float
    total: float | None
    message: str


class PhaseMessage(TypedDict):
    """What the job does from here on."""

    event: Literal["phase"]
    phase: str
    at: float


class AnsweredReply(TypedDict):
    event: Literal["answered"]
    answer: Json


class RaisedReply(TypedDict):
    event: Literal["raised"]
    failure: Failure


Message = ItemMessage | ProgressMessage | PhaseMessage | AnsweredReply | RaisedReply


class StartedMessage(TypedDict):
    event: Literal["started"]
    pid: int


class EndedMessage(TypedDict):
    event: Literal["ended"]
    status: int
    stopped: str
    """Why the server has killed it; empty where it has not."""


ServerMessage = StartedMessage | EndedMessage


# Job `reference`.


class ExchangeSetting(TypedDict):
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


class StageRequest(TypedDict):
    do: Literal["stage"]
    name: str
    """The candidate's name in the exchange folder."""
    candidate: Target


class PrepareRequest(TypedDict):
    do: Literal["prepare"]
    name: str
    case: Case


class CompareRequest(TypedDict):
    do: Literal["compare"]
    name: str
    id: str
    seed: int
    side: str
    """The candidate's name in the exchange folder."""
    digests: list[str]
    """Of the case's inputs and of the candidate's files."""


class ForgetRequest(TypedDict):
    do: Literal["forget"]
    name: str
    id: str


class MeasureRequest(TypedDict):
    do: Literal["measure"]
    name: str
    case: Case


ReferenceRequest = StageRequest | PrepareRequest | CompareRequest | ForgetRequest | MeasureRequest


class ReferenceLoadedItem(TypedDict):
    event: Literal["reference_loaded"]
    name: str
    device: str
    free_bytes: int | None


class StagedItem(TypedDict):
    event: Literal["staged"]
    digest: str


class PreparedItem(TypedDict):
    event: Literal["prepared"]
    digest: str
    aliases: list[tuple[str, str]]
    """The reference's own outputs, each with the output or input whose memory it shares."""


class MeasuredItem(TypedDict):
    event: Literal["measured"]
    elements: list[int]
    """Of each value that the reference computed, intermediate results included, each number once."""


class ComparedItem(TypedDict):
    event: Literal["compared"]
    statistics: Json
    """validate/error_statistics.py."""


class ForgottenItem(TypedDict):
    event: Literal["forgotten"]


class ReferenceRaisedItem(TypedDict):
    event: Literal["reference_raised"]
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


class Compilation(TypedDict):
    """How kernels are compiled, whatever their launches say."""

    environment: dict[str, str]
    """Variables that Triton reads when it compiles."""
    one_stage: bool
    """No loop is pipelined: num_stages=1."""
    other_warps: bool
    """num_warps=4, and 1 in the place of 4."""


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


class CandidateRequest(TypedDict):
    id: str
    name: str
    large_stride: list[str]
    """Names of the tensors with huge strides."""
    twice: bool
    """Whether a second run must give the same bits."""
    again: str | None
    """The id of the case before it, whose tensors are called with once more."""
    configuration: int
    """Which one autotuned kernels take (inputs/case.py)."""
    undo_trials: bool
    """Whether what they do on trial is undone before the launch that counts."""


class CandidateLoadedItem(TypedDict):
    event: Literal["candidate_loaded"]
    name: str
    traces: Json


class ViolationItem(TypedDict):
    """Comes at once, whatever happens to the process afterwards."""

    event: Literal["violation"]
    violation: Json


class ReturnedItem(TypedDict):
    event: Literal["returned"]
    case: str
    observation: Json
    """validate/observation.py."""


class RaisedItem(TypedDict):
    event: Literal["raised"]
    case: str
    failure: Failure
    observation: Json


CandidateItem = CandidateLoadedItem | ViolationItem | ReturnedItem | RaisedItem


class CandidateAnswer(TypedDict):
    traces: Json


# Job `timing`.


class TimedTarget(TypedDict):
    label: str
    target: Target
    role: Literal["reference", "candidate"]
    compiled: str | None
    """A mode of torch.compile."""


class TimingSetting(TypedDict):
    passes: str
    tf32: bool
    seconds: float
    """What one command may take."""
    round_seconds: float
    """What the rounds of one size may take."""
    samples: int
    """How many timed calls of each implementation are wanted."""
    full: bool
    """Whether launches, graphs, kernels and results are looked at too."""
    state_seed: int


class TimingArguments(TypedDict):
    reference: Target
    implementations: list[TimedTarget]
    cases: list[Case]
    setting: TimingSetting


class SizeItem(TypedDict):
    event: Literal["size"]
    size: Json
    """benchmark/measurement.py."""


# Job `try_kernel`.


class KernelTarget(TypedDict):
    backend: str
    arch: int | str
    """What GPUTarget takes: 90, or "gfx942"."""
    warp_size: int


class TryKernelArguments(TypedDict):
    target: KernelTarget | None


# Job `tune`.


class TuneArguments(TypedDict):
    target: Target
    reference: Target
    case: Case
    seed: int
    seconds: float


class TuningDevice(TypedDict):
    device: str
    triton: str


class TuningDeviceItem(TuningDevice):
    event: Literal["device"]


class ConfigAtSite(TypedDict):
    """One configuration of one kernel at one key."""

    kernel: str
    key: Json
    config: Json


class ConfigDroppedItem(ConfigAtSite):
    event: Literal["dropped"]
    dropped: str
    """Why."""


class ConfigTimedItem(ConfigAtSite):
    """A later one of the same configuration replaces it."""

    event: Literal["timed"]
    median_ms: float
    calls: int


class ConfigBestItem(ConfigAtSite):
    """A later one of the same kernel and key replaces it."""

    event: Literal["best"]
    median_ms: float
    seconds: float
    """Of the tuning of this kernel at this key, so far."""


TuneItem = TuningDeviceItem | ConfigDroppedItem | ConfigTimedItem | ConfigBestItem


class TuneAnswer(TypedDict):
    sites: int
    """Autotuned kernels by key."""


# Jobs `compile` and `profile`.


class OfflineGpu(TypedDict):
    """hardware/architectures.py, as far as it is needed; sizes in bytes."""

    name: str
    backend: str
    compiler_arch: int | str
    capability: tuple[int, int]
    warp_size: int
    sms: int
    warps: int
    registers: int
    shared_bytes: int
    shared_bytes_per_block: int


class CompileRequest(TypedDict):
    trials: list[int]
    """Numbers of the autotuners' trials to compile."""
    texts: list[str]
    """Kinds to keep."""


class CallArguments(TypedDict):
    candidate: Target
    reference: Target | None
    """Declares the inputs and has the state that a candidate function takes; None: the candidate itself."""
    case: Case


class CompileArguments(CallArguments):
    gpu: OfflineGpu
    wanted: CompileRequest


class ProfileArguments(CallArguments):
    profiler: str


class ProfileAnswer(TypedDict):
    device: str
    calls: int
    tree: list[Any]
    """Proton's, empty for other profilers."""


class KernelItem(TypedDict):
    event: Literal["kernel"]
    kernel: Json
    """CompiledKernel of schema/compiled.py."""


class LaunchedItem(TypedDict):
    """The first launch of a kernel that was compiled in a warm-up."""

    event: Literal["launched"]
    number: int
    grid: list[int] | None


CompileItem = KernelItem | LaunchedItem


class CompileAnswer(TypedDict):
    trials: list[dict[str, str]]
    """`kernel` and `configuration` of each trial, compiled or not."""
    failure: Failure | None
    """What ended the call early."""


# Jobs `describe`, `free_sizes`, `first_call` and `trace`.


class DescribeArguments(TypedDict):
    target: Target
    role: Literal["reference", "candidate"]


class FreeSizesArguments(TypedDict):
    target: Target


class FreeSizes(TypedDict):
    """FreeSizes of schema/description.py."""

    shapes: dict[str, list[str]]
    dims: dict[str, int]
    requires: list[str]
    same_program: list[str]


class FreeSizesAnswer(TypedDict):
    free: FreeSizes | None
    """None: all sizes are numbers."""


class RecordCallsArguments(TypedDict):
    target: Target
    example: Target


class RunTestsArguments(TypedDict):
    file: str


class FirstCallArguments(TypedDict):
    target: Target
    case: Case
    device: str


class TracedInput(TypedDict):
    name: str
    dtypes: list[str]
    """One for each trace."""
    shape: list[str]
    """Expressions over the dims."""
    traced: list[int]


class TraceSetting(TypedDict):
    dims: dict[str, int]
    keep: list[str]
    """Operators that are not decomposed."""
    backward: bool
    """Whether gradients are traced too: the joint graph."""


class TraceArguments(TypedDict):
    target: Target
    inputs: list[TracedInput]
    constants: Json
    setting: TraceSetting


class TraceSucceeded(TypedDict):
    event: Literal["traced"]
    graph: Json
    """schema/graph.py, float arguments as literals."""


class TraceRefused(TypedDict):
    event: Literal["failed"]
    why: str


class TraceAnswer(TypedDict):
    graph: Json
    """schema/graph.py of the first trace, float arguments told apart from literals."""
    traces: list[TraceSucceeded | TraceRefused]


Item = ReferenceItem | CandidateItem | SizeItem | TuneItem | CompileItem
