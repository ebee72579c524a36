"""A job's channel to its client: items, progress and phases go out, requests come in."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from . import wire

REQUESTS = "requests.jsonl"
ASKED, ANSWERED = "asked.fifo", "answered.fifo"
"""While a client waits for this job: requests come through the first, a byte a line goes out by the other."""
END = "end"
"""The last request."""


class JobReport:
    """Writes `progress.jsonl` in the run folder, one JSON object a line, each line with one system call.

    A line that was written survives whatever happens to the process afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The run folder; a job may leave files of its own in it."""
        self.phase = ""
        """What `during` named last."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(folder / "progress.jsonl", flags, 0o644)
        bell = folder / ANSWERED
        self._bell = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) if bell.exists() else None

    def item(self, item: wire.Item) -> None:
        """Hand over one result, as plain JSON. Raises ValueError for NaN and infinities."""
        self._write({"event": "item", "item": dict(item)})

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report `done` of `total`, in units of the job's own; `total` None where it is not known."""
        self._write({"event": "progress", "done": done, "total": total, "message": message})

    def during(self, phase: str) -> None:
        """Name what the job does from here on; a failure, a crash and a time-out will mention it."""
        self.phase = phase
        self._write({"event": "phase", "phase": phase, "at": time.time()})

    def requests(self) -> Iterator[Any]:
        """Each request as it comes, until END; when a job is run again, those of the first run."""
        live = self.folder / ASKED
        with (live if live.exists() else self.folder / REQUESTS).open(encoding="utf-8") as lines:
            for line in lines:
                request = json.loads(line)
                if request == END:
                    return
                yield request

    def _write(self, line: wire.ReportLine) -> None:
        data = memoryview((json.dumps(line, allow_nan=False) + "\n").encode())
        while data:
            data = data[os.write(self._file, data) :]
        self._ring()

    def _ring(self) -> None:
        """Wake the client, where one waits."""
        if self._bell is not None:
            with suppress(BlockingIOError):  # nobody listens, or it is ringing already
                os.write(self._bell, b".")

    def __enter__(self) -> "JobReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        self._ring()
        if self._bell is not None:
            os.close(self._bell)
