"""What job `timing` answers, and whether it can be believed: by clocks, results and settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pydantic import JsonValue

from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.timing import RedFlag
from pytorch_to_triton.schema.value import Value

OUTSIDE_SHARE = 0.7
"""A callable's clock that shows less than this share of the outside one's is not believed ..."""
OUTSIDE_BATCH_MS = 0.6
"""... unless a batch of calls differs by less: the outside clock sees the gaps between kernels too, and how a
process begins and ends a batch, up to 0.4 ms on an H200."""
BUSY_SHARE = 0.85
"""A clock that shows less than this share of the busy time is not believed: clock rates differ."""


@dataclass(frozen=True)
class SlowerClock:
    """A longer time than the callable's own."""

    ms: float
    clock: str
    """Which one, as text."""


def contradicting_clock(
    own_ms: float, *, outside_ms: float | None, batch: int, busy_ms: float | None, empty_ms: float
) -> SlowerClock | None:
    """The longest time by another clock, where it contradicts a callable's own events.

    `outside_ms` comes from a process that loads no user code and waits for the whole device, of each of
    `batch` calls in a row; `busy_ms` comes from the driver's record of every kernel on every stream, with a
    warm cache: with a cold one, and with the `empty_ms` that two events take by themselves, a call takes
    longer.
    """
    contradicting = []
    allowed = OUTSIDE_BATCH_MS / batch
    if outside_ms is not None and own_ms < min(OUTSIDE_SHARE * outside_ms, outside_ms - allowed):
        contradicting.append(SlowerClock(outside_ms, "the clock of another process"))
    if busy_ms and own_ms < BUSY_SHARE * (busy_ms + empty_ms):
        contradicting.append(SlowerClock(busy_ms + empty_ms, "the driver's record of all kernels"))
    return max(contradicting, key=lambda other: other.ms, default=None)


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

    @property
    def quick_outside_ms(self) -> float | None:
        """By the outside clock in a quick batch: other processes of the host only lengthen what it shows.

        None where the host could not keep up, which that clock would count.
        """
        outside = sorted(self.outside_ms)
        return outside[(len(outside) - 1) // 4] if outside else None


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

    def contradiction(self, label: str) -> SlowerClock | None:
        """A clock that contradicts a callable's own."""
        measured = self.implementations[label]
        return contradicting_clock(
            median(measured.samples_ms),
            outside_ms=measured.quick_outside_ms,
            batch=self.batch,
            busy_ms=measured.busy_ms,
            empty_ms=self.empty_ms,
        )


class Measurement(Value):
    """A whole run."""

    sizes: tuple[SizeMeasured, ...]
    """Those that were reached."""
    ended: str = ""
    """Why it ended before all sizes were done; empty where it did not."""


def flags_of(label: str, size: SizeMeasured) -> Iterator[RedFlag]:
    """Why this callable's figures may not be trusted."""
    measured = size.implementations[label]
    centre = median(measured.samples_ms)
    if other := size.contradiction(label):
        yield RedFlag(
            kind="clock_disagrees",
            label=label,
            message=f"{label} takes {centre:.4f} ms by its own events, but {other.ms:.4f} ms by "
            f"{other.clock}: work runs on a stream that is not timed, or the clock was tampered with.",
        )
    if size.check_note:
        yield RedFlag(
            kind="not_checked",
            label=label,
            message=f"The results of timed calls of {label} were not checked: {size.check_note}.",
        )
    if wrong := wrongness(measured.check):
        yield RedFlag(
            kind="wrong_outputs",
            label=label,
            message=f"A timed call of {label} returned wrong results: {wrong}.",
        )
    for changed in measured.changed:
        yield RedFlag(
            kind="settings_changed",
            label=label,
            message=f"Calls of {label} changed {changed.name} from {changed.before} to {changed.now}.",
        )


def wrongness(check: Check | None) -> str:
    """What is wrong with what a timed call returned; empty where nothing is known to be."""
    if check is None:
        return ""
    wrong = [f"{path} is missing" for path in check.missing]
    wrong += [f"{path} is unexpected" for path in check.extra]
    wrong += [f"{o.path} has the wrong {o.differs}" for o in check.outputs if o.differs]
    wrong += [
        f"{o.failing} of {o.elements} elements of {o.path} are wrong" for o in check.outputs if o.failing
    ]
    return ", ".join(wrong)
