"""What job `timing` answers, as values."""

from pydantic import JsonValue

from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.value import Value


class Changed(Value):
    """A setting of the process that calls have changed."""

    name: str
    before: JsonValue
    now: JsonValue


class OutputCheck(Value):
    """How one output of a timed call compares with the truth."""

    path: str
    differs: str | None
    """`type`, `dtype`, `shape` or `device`, where that alone is wrong."""
    elements: int
    failing: int
    """Elements outside of the error budget that validate uses."""


class Check(Value):
    """How what a timed call returned compares with the truth."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    outputs: tuple[OutputCheck, ...]


class MeasuredCallable(Value):
    """One callable at one size; all lists in milliseconds."""

    first_call_ms: float
    peak_bytes: int
    input_bytes: int
    output_bytes: int
    samples_ms: tuple[float, ...]
    """Of each call, between device events."""
    outside_ms: tuple[float, ...]
    """Of one call of each batch, by the clock of a process that loads no user code."""
    wall_ms: tuple[float, ...]
    graph_ms: tuple[float, ...] = ()
    graph_note: str = ""
    busy_ms: float | None = None
    """The device's busy time over all streams during a call, the cache warm."""
    library_ms: float | None = None
    """Of that, what was not compiled by Triton."""
    kernels: float | None = None
    profile_note: str = ""
    tuned: tuple[TunedConfig, ...] = ()
    changed: tuple[Changed, ...] = ()
    check: Check | None = None


class SizeMeasured(Value):
    """All callables at one size."""

    case: str
    batch: int
    """Calls that one process made in a row."""
    empty_ms: float
    """Between two events with nothing in between: what every figure holds at least."""
    implementations: dict[str, MeasuredCallable]
    failed: dict[str, str]
    check_note: str
    """Why what was returned could not be checked."""


class Measurement(Value):
    """A whole run."""

    sizes: tuple[SizeMeasured, ...]
    """Those that were reached."""
    ended: str = ""
    """Why it ended before all sizes were done; empty where it did not."""
