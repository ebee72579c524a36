"""A job that is asked one thing after the other, and answers each with an item."""

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
"""In the run folder, a request a line: for whoever does the job again."""
ASKED, ANSWERED = "asked.fifo", "answered.fifo"
"""While the job runs: the requests on their way to it, and a byte for each line of its progress."""
END = "end"
_SILENT_SECONDS = 0.25
"""After so long without a byte it is looked whether the job still runs."""

Item = dict[str, Any]


class Ended(Exception):
    """The job has ended, or took too long and was killed; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class RequestPipe:
    """The two named pipes of a run folder: requests to the running job, and its word that it has written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in (ASKED, ANSWERED):
            os.mkfifo(folder / name)
        # Opened for both: neither end waits for the other, and what is asked early is not lost.
        self._asked = os.open(folder / ASKED, os.O_RDWR | os.O_CLOEXEC)
        self._answered = os.open(folder / ANSWERED, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def send(self, request: Mapping[str, Any] | str) -> None:
        """Pass a request on, and keep it."""
        line = (json.dumps(request, allow_nan=False) + "\n").encode()
        with (self._folder / REQUESTS).open("ab") as kept:
            kept.write(line)
        os.write(self._asked, line)

    async def heard(self) -> None:
        """Wait until the job has written something."""
        await anyio.wait_readable(self._answered)
        with suppress(BlockingIOError):
            os.read(self._answered, 1 << 16)

    def close(self) -> None:
        """From here on the run folder holds files alone."""
        for file in (self._asked, self._answered):
            os.close(file)
        for name in (ASKED, ANSWERED):
            (self._folder / name).unlink(missing_ok=True)


class Conversation:
    """The line to a job that waits for requests. It answers them in their order, an item each."""

    def __init__(
        self, folder: Path, line: RequestPipe, running: RunningJob, listener: ProgressListener | None
    ) -> None:
        self.folder = folder
        self.progress = Progress(folder)
        self._line = line
        self._running = running
        self._listener = listener
        self._received = 0
        self._unclaimed = 0
        self._ended: Outcome | None = None

    async def ask(self, request: Mapping[str, Any], *, seconds: float) -> Item:
        """Send a request and wait for its answer. Raises Ended.

        Where the wait is cancelled, the answer belongs to nobody: the next one who asks gets their own.
        """
        self._line.send(request)
        try:
            return await self.item(seconds=seconds)
        except anyio.get_cancelled_exc_class():
            self._unclaimed += 1
            raise

    async def item(self, *, seconds: float) -> Item:
        """The next item; the job is killed where it is longer in coming. Raises Ended."""
        with anyio.move_on_after(seconds):
            while not self._arrived() and self._ended is None:
                await self._look()
        if self._arrived():
            self._received += self._unclaimed + 1
            self._unclaimed = 0
            return self.progress.items[self._received - 1]
        if self._ended is None:
            await self._finish("timed_out", f"not done within {seconds:g} s")
        assert self._ended is not None
        raise Ended(self._ended)

    async def end(self, *, seconds: float) -> Outcome:
        """Let the job finish, and see how it ended; it is killed where that takes longer."""
        if self._ended is None:
            self._line.send(END)
        with anyio.move_on_after(seconds):
            while self._ended is None:
                await self._see_end()
        if self._ended is None:
            await self._finish("timed_out", f"did not finish within {seconds:g} s")
        assert self._ended is not None
        return self._ended

    def _arrived(self) -> bool:
        return len(self.progress.items) > self._received + self._unclaimed

    async def _look(self) -> None:
        """Wait for something that the job has written, now and then for its end."""
        await self.progress.follow(self._listener)
        if self._arrived():
            return
        with anyio.move_on_after(_SILENT_SECONDS) as silence:
            await self._line.heard()
        if silence.cancelled_caught:
            with anyio.move_on_after(0.001):
                await self._see_end()

    async def _see_end(self) -> None:
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
