"""How long work reports its progress, and where its time went: the worker's processes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

MOST_PHASES = 8
"""A job that goes through more, such as dozens of cases, is shown without its phases."""


class ProgressListener(Protocol):
    """Receives a job's progress and results, in order."""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """`done` of `total`, in the job's own units; `total` None where the end is not known."""

    async def item(self, result: dict[str, Any]) -> None:
        """One result of a job that has many."""


@dataclass(frozen=True)
class ProcessTime:
    """One process of the worker."""

    what: str
    """The job's kind, or `imports` where a fork server loaded torch and triton."""
    interpreter: bool
    began: float
    """Seconds after the client was opened."""
    seconds: float
    phases: tuple[tuple[str, float], ...] = ()
    """The job's phases, and how many seconds each took."""


def phases_of(marks: list[tuple[str, float]], end: float) -> tuple[tuple[str, float], ...]:
    """Seconds from each mark to the next; `end` is when the job was over. All are times since the epoch."""
    if not 1 < len(marks) <= MOST_PHASES:
        return ()
    ends = [at for _, at in marks[1:]] + [end]
    return tuple((what, max(later - at, 0.0)) for (what, at), later in zip(marks, ends, strict=True))


def table_of(times: Iterable[ProcessTime]) -> list[tuple[str, str, str]]:
    """Began, seconds, and what, a row each in the order of their beginning."""
    rows = []
    for record in sorted(times, key=lambda record: record.began):
        how = "interpreter" if record.interpreter else "device"
        parts = ", ".join(f"{what} {seconds:.1f}" for what, seconds in record.phases)
        what = f"{record.what} ({how})" + f": {parts}" * bool(parts)
        rows.append((f"{record.began:.1f}", f"{record.seconds:.1f}", what))
    return rows
