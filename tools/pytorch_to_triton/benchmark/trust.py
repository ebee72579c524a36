"""Whether what was measured of a callable can be believed."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pytorch_to_triton.benchmark.clocks import SlowerClock, contradicting_clock
from pytorch_to_triton.benchmark.measurement import Check, MeasuredCallable
from pytorch_to_triton.schema.timing import RedFlag


@dataclass(frozen=True)
class TimedSamples:
    """One callable's samples at one size."""

    label: str
    measured: MeasuredCallable
    batch: int
    empty_ms: float
    check_note: str

    @property
    def outside_ms(self) -> float | None:
        """By the outside clock; None where the host could not keep up, which that clock would count."""
        return median(self.measured.outside_ms) if self.measured.outside_ms else None

    def contradiction(self) -> SlowerClock | None:
        """A clock that contradicts its own."""
        return contradicting_clock(
            median(self.measured.samples_ms),
            outside_ms=self.outside_ms,
            batch=self.batch,
            busy_ms=self.measured.busy_ms,
            empty_ms=self.empty_ms,
        )


def flags_of(seen: TimedSamples) -> Iterator[RedFlag]:
    """Why this callable's figures may not be trusted."""
    label, measured = seen.label, seen.measured
    centre = median(measured.samples_ms)
    if other := seen.contradiction():
        yield RedFlag(
            kind="clock_disagrees",
            label=label,
            message=f"{label} takes {centre:.4f} ms by its own events, but {other.ms:.4f} ms by "
            f"{other.clock}: work runs on a stream that is not timed, or the clock was tampered with.",
        )
    if seen.check_note:
        yield RedFlag(
            kind="not_checked",
            label=label,
            message=f"The results of timed calls of {label} were not checked: {seen.check_note}.",
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
