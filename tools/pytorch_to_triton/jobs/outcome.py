"""What a job has said, and how it ended."""

import os
import signal
from pathlib import Path
from typing import Any, BinaryIO

from pytorch_to_triton.schema.job import Outcome, Status
from pytorch_to_triton.worker import wire

_TAIL_BYTES = 8192


class Messages:
    """What a job has said so far."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.during = ""
        self.marks: list[tuple[str, float]] = []
        """The phases that the job reported, and when each began."""
        self._answer: dict[str, Any] | None = None
        self._failure: wire.Failure | None = None

    def note(self, message: wire.Message) -> None:
        """Take one message into account."""
        match message:
            case wire.PhaseMessage():
                self.during = message.phase
                self.marks.append((message.phase, message.at))
            case wire.ItemMessage():
                self.items.append(message.item)
            case wire.AnsweredReply():
                self._answer = message.answer
            case wire.RaisedReply():
                self._failure = message.failure

    def outcome(self, folder: Path, status: Status, detail: str) -> Outcome:
        """Of a job that has ended: its reply decides, else `status` and `detail`, as its end was seen."""
        if self._failure is not None:
            status, detail = "raised", f"{self._failure.type}: {self._failure.message}"
        elif self._answer is not None:
            status, detail = "answered", ""
        return Outcome(
            status=status,
            answer=self._answer,
            items=tuple(self.items),
            failure=self._failure,
            detail=detail,
            during=self.during,
            log=_log_end(folder),
            folder=folder,
        )


def write_outcome(outcome: Outcome) -> None:
    """Leave `outcome.json` in the run folder: how the job ended, and all that it handed over."""
    text = outcome.model_dump_json(exclude={"folder"})
    (outcome.folder / "outcome.json").write_text(text, encoding="utf-8")


def describe_status(status: int) -> str:
    """A wait status, of a job that left no reply, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code} before it answered"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"killed by {name}" + (" (often: out of memory)" if -code == signal.SIGKILL else "")


KILLED = describe_status(int(signal.SIGKILL))
"""What nothing but the kernel, for want of memory, or somebody outside does to a process."""


def text_end(file: BinaryIO) -> str:
    """The last 8 KiB of an open file, whose position stays: another process may be writing there."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(errors="replace")


def _log_end(folder: Path) -> str:
    try:
        with (folder / "log.txt").open("rb") as log:
            return text_end(log)
    except FileNotFoundError:
        return ""
