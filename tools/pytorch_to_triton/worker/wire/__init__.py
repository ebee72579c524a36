"""The types of everything that crosses the border between the tools and the worker's processes, as JSON.

This folder is all that the tools import of the worker, and it imports nothing but the standard library. A
job's arguments are those of its `work`; what is made of more than JSON is a frozen dataclass, which
`as_json.py` encodes and decodes; where one of several may come, its class is named.
"""

from typing import Any, Literal, TypedDict

from .as_json import NamedValue, WireValue

Json = dict[str, Any]
"""An object whose fields are described elsewhere."""
Case = dict[str, Any]
"""inputs/case.py as JSON, with a `seed`, and with an `id` where it has a folder in the exchange folder."""


class Target(TypedDict):
    """schema/target.py."""

    path: str
    name: str | None
    init: list[str]


class Failure(WireValue):
    """An exception that the job's code raised, as far as a person needs it."""

    type: str
    """The exception's class name."""
    message: str
    traceback: str
    """Frames of the user's own code only, innermost last."""
    file: str | None = None
    line: int | None = None
    statement: str = ""
    """The `raise` or `assert`, of the user's code or of Triton's, that raised it; empty: there is none."""
    during: str = ""
    """The worker's phase: `load`, `call`, the case's name, ..."""

    @property
    def named(self) -> str:
        """`ValueError: no rows`, as part of a sentence; the type alone where there is no message."""
        return f"{self.type}: {self.message}".removesuffix(": ").removesuffix(".")


# What a job says, and the fork server says about it.


class ItemMessage(NamedValue):
    item: Any
    """One of the dataclasses below; as JSON where it is received."""


class ProgressMessage(NamedValue):
    done: float
    total: float | None
    message: str


class PhaseMessage(NamedValue):
    """What the job does from here on."""

    phase: str
    at: float


class AnsweredReply(NamedValue):
    answer: Any


class RaisedReply(NamedValue):
    failure: Failure


Message = ItemMessage | ProgressMessage | PhaseMessage | AnsweredReply | RaisedReply


class StartedMessage(NamedValue):
    pid: int


class EndedMessage(NamedValue):
    status: int
    stopped: str
    """Why the server has killed it; empty where it has not."""


ServerMessage = StartedMessage | EndedMessage


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
    unordered: list[Json]
    """Results whose order is declared free (comparison.py)."""


# Job `tune`.


class TuningDeviceItem(NamedValue):
    device: str
    triton: str


class ConfigDroppedItem(NamedValue):
    """One configuration of one kernel at one key, as in the items below."""

    kernel: str
    key: Json
    config: Json
    dropped: str
    """Why."""


class ConfigTimedItem(NamedValue):
    """A later one of the same configuration replaces it."""

    kernel: str
    key: Json
    config: Json
    median_ms: float
    calls: int


class ConfigBestItem(NamedValue):
    """A later one of the same kernel and key replaces it."""

    kernel: str
    key: Json
    config: Json
    median_ms: float
    seconds: float
    """Of the tuning of this kernel at this key, so far."""


TuneItem = TuningDeviceItem | ConfigDroppedItem | ConfigTimedItem | ConfigBestItem


# Jobs `compile` and `profile`.


class OfflineGpu(WireValue):
    """A GPU that kernels are compiled for (hardware/architectures.py); sizes in bytes."""

    name: str
    backend: str
    compiler_arch: int | str
    """What GPUTarget takes: 90, or "gfx942"."""
    capability: tuple[int, int]
    warp_size: int
    sms: int
    warps: int
    """At most resident on an SM."""
    registers: int
    """Of an SM, 32 bits each."""
    shared_bytes: int
    """Of an SM."""
    shared_bytes_per_block: int
    """At most, for one block."""


LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What every launch takes beside the kernel's parameters."""


class CompileRequest(WireValue):
    """What is to be compiled and kept."""

    trials: tuple[int, ...]
    """Numbers of the autotuners' trials, counted over the whole call; launches beside them always are."""
    texts: tuple[str, ...]
    """Kinds of schema/compiled.py to keep."""
    backward: bool
    """Whether the call's gradients are asked for too."""
    what_if: dict[str, int]
    """Launch options and constexprs in place of what launches give, for the kernels that take them."""


class TrafficAnswer(WireValue):
    launches: tuple[str, ...]
    """Names of kernels and of PyTorch's operators, in order."""
    bytes_moved: int


class KernelItem(NamedValue):
    kernel: Json
    """CompiledKernel of schema/compiled.py."""


class LaunchedItem(NamedValue):
    """The first launch of a kernel that was compiled in a warm-up."""

    number: int
    grid: tuple[int, ...] | None


CompileItem = KernelItem | LaunchedItem


class CompileAnswer(WireValue):
    trials: tuple[dict[str, str], ...]
    """`kernel` and `configuration` of each trial, compiled or not."""
    failure: Failure | None
    """What ended the call early."""
