"""While a command works: progress on stderr, and Ctrl-C, which ends it whatever it waits for."""

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.terminal import INTERRUPTED

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PLAIN_SECONDS = 2.0
"""At most one line of plain progress in this time."""
Result = TypeVar("Result")


class Interrupted(Refusal):
    """Ctrl-C ended a command while it showed a line of progress; `hint` says what is left of it."""

    exit_code = INTERRUPTED

    def __init__(self, line: str, hint: str) -> None:
        at = f" ({line.replace('  ', ', ')})" if line else ""
        super().__init__(f"The command was interrupted{at}.", hint)


@contextmanager
def progress_on_stderr(first: str = "starting the worker") -> "Iterator[PlainProgress | Bar]":
    """A bar if stderr is a terminal, else a plain line now and then."""
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    description = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
    )
    # Nothing here asks for attention: no colours.
    bar = BarColumn(20, "dim", complete_style="none", finished_style="none", pulse_style="none")
    times = TextColumn("{task.elapsed:.0f} s,"), TimeRemainingColumn(compact=True), TextColumn("left")
    columns = (description, bar, *times)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(first, total=None))


def line_of(done: float, total: float | None, message: str) -> str:
    """`122 of 264  stage 2: M=129 N=32`: the count first, as what does not fit is cut at the end."""
    return f"{done:g} of {total:g}  {message}" if total else message


def left_of(done: float, total: float | None, seconds: float) -> str:
    """`, about 40 s left`, by how long the first ones took; empty where too little is done to tell."""
    if not total or done * 10 < total:
        return ""
    return f", about {max(total - done, 0) * seconds / done:.0f} s left"


class PlainProgress:
    """A ProgressListener that writes lines."""

    def __init__(self) -> None:
        self.line = ""
        """The last one, shown or not."""
        self._next = time.monotonic()
        self._began: tuple[float, float | None] = self._next, None
        """When the work of this total began."""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.line = line_of(done, total, message)
        now = time.monotonic()
        if total != self._began[1]:
            self._began = now, total
        if now >= self._next:
            self._next = now + _PLAIN_SECONDS
            print(self.line + left_of(done, total, now - self._began[0]), file=sys.stderr, flush=True)

    async def item(self, result: dict[str, Any]) -> None:
        """Results are shown at the end."""


class Bar:
    """A ProgressListener that moves a bar."""

    def __init__(self, progress: "Progress", task: "TaskID") -> None:
        self.line = ""
        self._progress = progress
        self._task = task

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.line = line_of(done, total, message)
        self._progress.update(self._task, completed=done, total=total, description=self.line)

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
