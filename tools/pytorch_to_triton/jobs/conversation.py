"""A job that takes one request after another, and answers each with an item."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.jobs.fork_server import ForkServerGone, RunningJob
from pytorch_to_triton.jobs.outcome import Progress, describe_end, read_outcome
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Outcome, Status

REQUESTS = "requests.jsonl"
"""In the run folder, one request a line, to do the job again."""
ASKED, ANSWERED = "asked.fifo", "answered.fifo"
"""While the job runs: the requests on their way to it, and a byte for each line of its progress."""
END = "end"
_SILENT_SECONDS = 0.25
"""After this long without a byte, check whether the job still runs."""

Item = dict[str, Any]


class Ended(Exception):
    """The job has ended, or took too long and was killed; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class RequestPipe:
    """The two named pipes of a run folder: requests to the job, and its signals that it has written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in (ASKED, ANSWERED):
            os.mkfifo(folder / name)
        # Opened for reading and writing: neither end waits for the other, and early requests are not lost.
        self._asked = os.open(folder / ASKED, os.O_RDWR | os.O_CLOEXEC)
        self._answered = os.open(folder / ANSWERED, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def send(self, request: Mapping[str, Any] | str) -> None:
        """Pass a request on, and keep it."""
        line = (json.dumps(request, allow_nan=False) + "\n").encode()
        with (self._folder / REQUESTS).open("ab") as kept:
            kept.write(line)
        os.write(self._asked, line)

    async def wait_for_output(self) -> None:
        """Wait until the job has written something."""
        await anyio.wait_readable(self._answered)
        with suppress(BlockingIOError):
            os.read(self._answered, 1 << 16)

    def close(self) -> None:
        """Close and remove the pipes."""
        for file in (self._asked, self._answered):
            os.close(file)
        for name in (ASKED, ANSWERED):
            (self._folder / name).unlink(missing_ok=True)


class Conversation:
    """Requests to a running job, which answers them in their order, an item each."""

    def __init__(
        self, folder: Path, pipe: RequestPipe, running: RunningJob, listener: ProgressListener | None
    ) -> None:
        self.folder = folder
        self.progress = Progress(folder)
        self._pipe = pipe
        self._running = running
        self._listener = listener
        self._received = 0
        self._abandoned = 0
        self._ended: Outcome | None = None

    async def ask(self, request: Mapping[str, Any], *, seconds: float) -> Item:
        """Send a request and wait for its answer. Raises Ended.

        Where the wait is cancelled, the answer is dropped when it comes: the next request gets its own.
        """
        self._pipe.send(request)
        try:
            return await self.item(seconds=seconds)
        except anyio.get_cancelled_exc_class():
            self._abandoned += 1
            raise

    async def item(self, *, seconds: float) -> Item:
        """The next item; the job is killed where that takes longer. Raises Ended."""
        with anyio.move_on_after(seconds):
            while not self._arrived() and self._ended is None:
                await self._wait()
        if self._arrived():
            self._received += self._abandoned + 1
            self._abandoned = 0
            return self.progress.items[self._received - 1]
        if self._ended is None:
            await self._finish("timed_out", f"not done within {seconds:g} s")
        assert self._ended is not None
        raise Ended(self._ended)

    async def end(self, *, seconds: float) -> Outcome:
        """Let the job finish; it is killed where that takes longer."""
        if self._ended is None:
            self._pipe.send(END)
        with anyio.move_on_after(seconds):
            while self._ended is None:
                await self._check_end()
        if self._ended is None:
            await self._finish("timed_out", f"did not finish within {seconds:g} s")
        assert self._ended is not None
        return self._ended

    def _arrived(self) -> bool:
        return len(self.progress.items) > self._received + self._abandoned

    async def _wait(self) -> None:
        """Wait until the job writes something, and check now and then whether it has ended."""
        await self.progress.follow(self._listener)
        if self._arrived():
            return
        with anyio.move_on_after(_SILENT_SECONDS) as silence:
            await self._pipe.wait_for_output()
        if silence.cancelled_caught:
            with anyio.move_on_after(0.001):
                await self._check_end()

    async def _check_end(self) -> None:
        try:
            status = await self._running.ended()
        except ForkServerGone:
            return await self._finish("lost", describe_end(None))
        return await self._finish("crashed", describe_end(status))

    async def _finish(self, status: Status, detail: str) -> None:
        """Kill what is left of the job, and read what it left behind."""
        await self._running.kill()
        await self.progress.follow(self._listener)
        self._ended = read_outcome(self.folder, self.progress, status, detail)
