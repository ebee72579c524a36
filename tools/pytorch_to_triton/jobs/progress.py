"""Following long work while it goes on."""

from typing import Any, Protocol


class ProgressListener(Protocol):
    """Told how a job is getting on, in the order in which it happened."""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """`done` of `total`, in the job's own units; `total` None where the end is not known."""

    async def item(self, result: dict[str, Any]) -> None:
        """One result of a job that has many."""
