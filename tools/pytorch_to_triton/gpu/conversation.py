"""A job that is asked one thing after the other, and answers each with an item."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.gpu.forkserver import ForkServerGone, RunningJob
from pytorch_to_triton.gpu.outcome import Progress, describe_end, read_outcome
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.job import Outcome, Status

REQUESTS = "requests.jsonl"
"""In the run folder, a request a line: appended here, read by the worker (worker/report.py)."""
END = "end"
_QUICKEST_LOOK, _SLOWEST_LOOK = 0.0005, 0.02
"""Seconds between two looks for an answer: quick at first, then slower."""

Item = dict[str, Any]


class Ended(Exception):
    """The job has ended, or took too long and was killed; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Conversation:
    """The line to a job that waits for requests. It answers them in their order, an item each."""

    def __init__(self, folder: Path, running: RunningJob, watch: Watch | None) -> None:
        self.folder = folder
        self._running = running
        self._watch = watch
        self.progress = Progress(folder)
        self._received = 0
        self._ended: Outcome | None = None

    async def ask(self, request: Mapping[str, Any], *, seconds: float) -> Item:
        """Send a request and wait for its answer. Raises Ended."""
        self._append(request)
        return await self.item(seconds=seconds)

    async def item(self, *, seconds: float) -> Item:
        """The next item; the job is killed where it is longer in coming. Raises Ended."""
        with anyio.move_on_after(seconds):
            while not self._arrived() and self._ended is None:
                await self._look()
        if self._arrived():
            self._received += 1
            return self.progress.items[self._received - 1]
        if self._ended is None:
            await self._finish("timed_out", f"not done within {seconds:g} s")
        assert self._ended is not None
        raise Ended(self._ended)

    async def end(self, *, seconds: float) -> Outcome:
        """Let the job finish, and see how it ended; it is killed where that takes longer."""
        if self._ended is None:
            self._append(END)
        with anyio.move_on_after(seconds):
            while self._ended is None:
                await self._look()
        if self._ended is None:
            await self._finish("timed_out", f"did not finish within {seconds:g} s")
        assert self._ended is not None
        return self._ended

    def _arrived(self) -> bool:
        return len(self.progress.items) > self._received

    async def _look(self) -> None:
        """Wait for the job's end or for something that it has written."""
        pause, before = _QUICKEST_LOOK, len(self.progress.items)
        while len(self.progress.items) == before:
            with anyio.move_on_after(pause):
                try:
                    status = await self._running.ended()
                except ForkServerGone:
                    return await self._finish("lost", describe_end(None))
                return await self._finish("crashed", describe_end(status))
            await self.progress.follow(self._watch)
            pause = min(2 * pause, _SLOWEST_LOOK)
        return None

    async def _finish(self, status: Status, detail: str) -> None:
        """Kill what is left of the job, and read what it left behind."""
        await self._running.kill()
        await self.progress.follow(self._watch)
        self._ended = read_outcome(self.folder, self.progress, status, detail)

    def _append(self, request: Mapping[str, Any] | str) -> None:
        line = json.dumps(request, allow_nan=False) + "\n"
        file = os.open(self.folder / REQUESTS, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
