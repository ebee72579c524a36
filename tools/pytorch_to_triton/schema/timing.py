"""How long something took on a device, and how long it had to take."""

from typing import Literal

from pytorch_to_triton.schema.value import Value


class Ceilings(Value):
    """What a GPU can do at most, which nothing on it can beat for long."""

    device: str
    provenance: Literal["measured", "estimated"]
    source: str
    """`driver 580.159, 2026-11-21`, or the data sheet."""
    copy_gbytes_per_s: float
    """A large device-to-device copy, bytes read plus bytes written."""
    matmul_tflops: dict[str, float]
    """Dense products by operand dtype; `tf32` is float32 with TF32 on."""


class MinimalWork(Value):
    """What a call has to do at least."""

    bytes_moved: int
    """Each input read once, each output written once."""
    flops: dict[str, int]
    """Floating-point operations of products, convolutions and attention by the dtype of their operands, and
    `float32` for all others; empty where unknown."""
    provenance: str
    """How both are known: `counted in the traced graph`, `declared in k.py`."""
    vector_flops: int = 0
    """Those of `flops["float32"]` that belong to no product: computed in float32 even where TF32 is on."""


class Traffic(Value):
    """What a call launches and moves, counted without a measurement."""

    launches: tuple[str, ...]
    """Names of kernels and of PyTorch's operators, in order, those of the backward pass included."""
    bytes_moved: int
    """Each launch moves each of its tensors once."""
    least_bytes: int
    """Each input read once, each output written once."""

    @property
    def times_least(self) -> float:
        """How often as many bytes it moves as are needed."""
        return self.bytes_moved / max(self.least_bytes, 1)


class Roofline(Value):
    """The roofline's answer: no kernel does this work faster on this device."""

    ms: float
    binds: Literal["memory", "compute"]
    bytes_ms: float
    flops_ms: float
    provenance: Literal["measured", "estimated"]
    """Of the ceilings."""


class Timing(Value):
    """Times of one callable, measured in rounds with others."""

    label: str
    median_ms: float
    """On the device, between events, the L2 cache cold."""
    low_ms: float
    """Lower end of the median's 95 % confidence interval."""
    high_ms: float
    """Upper end of it."""
    calls: int
    spread: float = 0.0
    """Interquartile range over the median."""
    wall_ms: float | None = None
    """From the call to the device's being done, by the host's clock; None: not measured."""
    graph_ms: float | None = None
    """Replayed as a captured CUDA graph, so without launch overhead; None: could not be captured."""
    first_call_ms: float | None = None
    """The first call, compilation and autotuning included, with empty caches."""
    peak_bytes: int | None = None
    """Device memory allocated during a call beyond what was there before, outputs included."""
    outside_ms: float | None = None
    """The same calls by the clock of another process that loads no user code."""
    busy_ms: float | None = None
    """The device's busy time over all streams during a call, by the driver's record, the L2 cache warm."""
    library_ms: float | None = None
    """Of that, kernels, copies and fills that Triton did not compile: PyTorch's and its libraries'."""
    kernels: float | None = None
    """How many kernels, copies and fills a call runs on the device."""
    gbytes_per_s: float | None = None
    """Each input read once and each output written once, over the median."""
    tflops: float | None = None
    share_of_limit: float | None = None
    """The limit's time over the median; 1.0 is the roofline."""
    notes: tuple[str, ...] = ()
    """E.g. why it could not be captured as a graph."""


FlagKind = Literal[
    "wrong_outputs", "clock_disagrees", "settings_changed", "not_checked", "throttled", "shared_device",
    "noisy",
    "slower_than_eager", "slower_than_compile", "slower_than_other", "below_half_of_limit",
    "grows_faster_than_work",
]  # fmt: skip
"""The worst first. Up to `noisy` they limit the trust in figures; the others are what figures show."""


class RedFlag(Value):
    """Something about a timing that a reader must know."""

    kind: FlagKind
    label: str
    """Whose timing; empty for the whole run."""
    message: str
    """A whole sentence, with the figures."""


class TimingTable(Value):
    """Timings of several callables on the same inputs in one run."""

    device: str
    dims: dict[str, int]
    dtypes: dict[str, str]
    """Of the tensors, by name."""
    bytes_moved: int
    """Each input once and each output once."""
    timings: tuple[Timing, ...]
    failed: dict[str, str]
    """What could not be timed, with the exception."""
    work: MinimalWork | None = None
    limit: Roofline | None = None
    """None where this device's ceilings are not known."""
    flags: tuple[RedFlag, ...] = ()

    def of(self, label: str) -> Timing | None:
        """The timing of that label."""
        return next((t for t in self.timings if t.label == label), None)
