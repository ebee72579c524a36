"""A job's progress and outcome, read from its run folder."""

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Failure, Outcome, Status

if TYPE_CHECKING:
    from pytorch_to_triton.worker import wire

_TAIL_BYTES = 8192


class Progress:
    """Reads `progress.jsonl` as it grows; a line that is still being written is read next time."""

    def __init__(self, folder: Path) -> None:
        self.items: list[dict[str, Any]] = []
        self.during = ""
        self.marks: list[tuple[str, float]] = []
        """The phases that the job reported, and when each began."""
        self._path = folder / "progress.jsonl"
        self._offset = 0

    async def follow(self, listener: ProgressListener | None) -> None:
        """Read what was written since the last call, and pass it to `listener`."""
        for line in self._new_lines():
            match line:
                case {"event": "phase", "phase": str(phase), "at": float(at)}:
                    self.during = phase
                    self.marks.append((phase, at))
                case {"event": "item", "item": dict(item)}:
                    self.items.append(item)
                    if listener:
                        await listener.item(item)
                case {"event": "progress", "done": done, "total": total, "message": message} if listener:
                    await listener.progress(done, total, message)

    def _new_lines(self) -> list[Any]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def read_outcome(folder: Path, progress: Progress, status: Status, detail: str) -> Outcome:
    """The outcome of an ended job. `reply.json` decides, else why it was stopped, else the arguments."""
    answer: dict[str, Any] | None = None
    failure: Failure | None = None
    reply = folder / "reply.json"
    if reply.exists():
        replied: wire.Reply = json.loads(reply.read_text(encoding="utf-8"))
        if replied["event"] == "raised":
            failure = Failure.model_validate(replied["failure"])
            status, detail = "raised", f"{failure.type}: {failure.message}"
        else:
            answer = replied["answer"]
            status, detail = "answered", ""
    elif (stopped := folder / "stopped.txt").exists():
        status, detail = "crashed", stopped.read_text(encoding="utf-8")
    write_end(folder, status, detail)
    return Outcome(
        status=status,
        answer=answer,
        items=tuple(progress.items),
        failure=failure,
        detail=detail,
        during=progress.during,
        log=_log_end(folder),
        folder=folder,
    )


def write_end(folder: Path, status: Status, detail: str) -> None:
    """Leave `outcome.json`: how the job ended."""
    text = json.dumps({"status": status, "detail": detail})
    (folder / "outcome.json").write_text(text, encoding="utf-8")


def describe_end(status: int | None) -> str:
    """A wait status, of a job that left no reply, in words; None: its fork server is gone too."""
    if status is None:
        return "the process that the job was forked from has ended"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code} before it answered"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"killed by {name}" + (" (often: out of memory)" if -code == signal.SIGKILL else "")


KILLED = describe_end(int(signal.SIGKILL))
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
