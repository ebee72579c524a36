"""While a command works: progress on stderr, and Ctrl-C, which ends it whatever it waits for."""

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pytorch_to_triton.jobs.progress import ProgressListener

_PLAIN_SECONDS = 2.0
"""At most one line of plain progress in this time."""
Result = TypeVar("Result")


@contextmanager
def progress_on_stderr(first: str = "starting the worker") -> "Iterator[ProgressListener]":
    """A bar if stderr is a terminal, else a plain line now and then."""
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    description = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
    )
    # Nothing here asks for attention: no colours.
    bar = BarColumn(20, "dim", complete_style="none", finished_style="none", pulse_style="none")
    columns = (description, bar, TextColumn("{task.fields[count]}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(first, total=None, count=""))


class PlainProgress:
    """A ProgressListener that writes lines."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    async def progress(self, done: float, total: float | None, message: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PLAIN_SECONDS
            count = f" ({done:g} of {total:g})" if total else ""
            print(f"{message}{count}", file=sys.stderr, flush=True)

    async def item(self, result: dict[str, Any]) -> None:
        """Results are shown at the end."""


class Bar:
    """A ProgressListener that moves a bar."""

    def __init__(self, progress: "Progress", task: "TaskID") -> None:
        self._progress = progress
        self._task = task

    async def progress(self, done: float, total: float | None, message: str) -> None:
        count = f"{done:g} of {total:g}" if total else ""
        self._progress.update(self._task, completed=done, total=total, description=message, count=count)

    async def item(self, result: dict[str, Any]) -> None:
        """Results are shown at the end."""


def run_interruptible(function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """What the function returns, in an event loop of its own. Raises KeyboardInterrupt at Ctrl-C."""
    import anyio

    return anyio.run(until_interrupted, function, *arguments)


async def until_interrupted(function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """What the function returns. Raises KeyboardInterrupt once it has ended; a second Ctrl-C does not wait.

    asyncio's own way cancels a task once, which a scope of anyio's that ends at that moment takes for its own
    cancellation: one Ctrl-C in a hundred was lost.
    """
    import asyncio

    import anyio

    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def interrupt() -> None:
            loop.remove_signal_handler(signal.SIGINT)
            scope.cancel()

        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            return await function(*arguments)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
    raise KeyboardInterrupt
