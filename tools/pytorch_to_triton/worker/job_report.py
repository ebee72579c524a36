"""What a job hands out on its way: results one by one, how far it is, what it is doing."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

REQUESTS = "requests.jsonl"
ASKED, ANSWERED = "asked.fifo", "answered.fifo"
"""Where somebody waits for this job: requests come through the first, a byte a line goes out by the other."""
END = "end"
"""The request after which there is none."""


class Report:
    """Writes `progress.jsonl` in the run folder, one JSON object a line, each line with one system call.

    A line that was written survives whatever happens to the process afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The run folder; a job may leave files of its own in it."""
        self.doing = ""
        """The last thing that `during` named."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(folder / "progress.jsonl", flags, 0o644)
        bell = folder / ANSWERED
        self._bell = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) if bell.exists() else None

    def item(self, result: Mapping[str, Any]) -> None:
        """Hand over one result, as plain JSON. Raises ValueError for NaN and infinities."""
        self._write({"item": result})

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Say how far the job is, in units of its own; `total` None where the end is not known."""
        self._write({"progress": {"done": done, "total": total, "message": message}})

    def during(self, what: str) -> None:
        """Name what is being done from here on; a failure, a crash and a time-out will mention it."""
        self.doing = what
        self._write({"during": what, "at": time.time()})

    def requests(self) -> Iterator[dict[str, Any]]:
        """Each request as it comes, until one says END; of a job done again, those of the first time."""
        live = self.folder / ASKED
        with (live if live.exists() else self.folder / REQUESTS).open(encoding="utf-8") as lines:
            for line in lines:
                request = json.loads(line)
                if request == END:
                    return
                yield request

    def _write(self, line: dict[str, Any]) -> None:
        data = memoryview((json.dumps(line, allow_nan=False) + "\n").encode())
        while data:
            data = data[os.write(self._file, data) :]
        if self._bell is not None:
            with suppress(BlockingIOError):  # nobody listens, or there is enough to be heard already
                os.write(self._bell, b".")

    def __enter__(self) -> "Report":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        if self._bell is not None:
            with suppress(BlockingIOError):
                os.write(self._bell, b".")
            os.close(self._bell)
