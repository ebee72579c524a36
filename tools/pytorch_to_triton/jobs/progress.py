"""How long work reports its progress."""

from typing import Any, Protocol


class ProgressListener(Protocol):
    """Receives a job's progress and results, in order."""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """`done` of `total`, in the job's own units; `total` None where the end is not known."""

    async def item(self, result: dict[str, Any]) -> None:
        """One result of a job that has many."""
