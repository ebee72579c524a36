"""A callable's own clock against others: its author's code runs in the process that holds the events."""

from dataclasses import dataclass

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
