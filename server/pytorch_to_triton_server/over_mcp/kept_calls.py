"""Long calls in files: a client that starts its server anew finds those whose job_id it was told."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import psutil
from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton_server.over_mcp.answers import Detail
from pytorch_to_triton_server.over_mcp.output_schemas import model_of

MOST_FILES = 50
State = Literal["running", "finished", "failed", "cancelled", "lost"]
"""Lost: it ended with its server, before it had a result."""


class KeptCall(Value):
    """What is known of a call outside the server that runs it."""

    job_id: str
    tool: str
    detail: Detail
    folder: Path
    """In which its server runs: servers of other folders know nothing of the call."""
    server: int
    """Process id."""
    server_began: float
    """Seconds since the epoch: a process id is used again."""
    end: Literal["finished", "failed", "cancelled"] | None = None
    seconds: float = 0.0
    """From its beginning to its end."""
    result: dict[str, Any] | None = None
    why: tuple[str, str] | None = None
    """Of a call that failed, what was wrong, and what to do about it."""

    @staticmethod
    def begun(job_id: str, tool: str, detail: Detail) -> "KeptCall":
        """Of this server."""
        process = psutil.Process()
        return KeptCall(
            job_id=job_id,
            tool=tool,
            detail=detail,
            folder=Path.cwd(),
            server=process.pid,
            server_began=process.create_time(),
        )

    @property
    def state(self) -> State:
        """How far it is, by what its server wrote last and whether that still runs."""
        if self.end is not None:
            return self.end
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(self.server).create_time() == self.server_began:
                return "running"
        return "lost"

    def kept_result(self) -> Any:
        """Its result. Raises Refusal where it has none: what it raised, or why."""
        if self.state == "finished":
            return model_of(self.tool).model_validate(self.result)
        if self.why is not None:
            raise Refusal(*self.why)
        if self.state == "running":
            raise BadInput(
                f"{self.tool} runs in another server in this folder, process {self.server}.",
                "Call job again later for the result; only that server can cancel it.",
            )
        how = "was cancelled" if self.state == "cancelled" else "ended with its server, without a result"
        more = " What a session had reached is kept." if self.tool.startswith("convert") else ""
        raise BadInput(f"{self.tool} {how}.{more}", f"Call {self.tool} again.")

    def write(self) -> None:
        """Into its file; the oldest ones go. A cache that cannot be written costs no call its result."""
        with suppress(OSError):
            places.write_atomically(_file(self.job_id), self.model_dump_json())
            for old in _newest_first()[MOST_FILES:]:
                old.unlink(missing_ok=True)


def read_kept(job_id: str) -> KeptCall | None:
    """The call of this folder that has the job_id."""
    return _read(_file(job_id)) if job_id.isalnum() and job_id.isascii() else None


def all_kept() -> list[KeptCall]:
    """The calls of this folder, the latest first."""
    return [kept for file in _newest_first() if (kept := _read(file)) is not None]


def _read(file: Path) -> KeptCall | None:
    """None for a call of another folder, or a file that is gone or of another version."""
    with suppress(OSError, ValidationError):
        kept = KeptCall.model_validate_json(file.read_bytes())
        return kept if kept.folder == Path.cwd() else None
    return None


def _file(job_id: str) -> Path:
    return places.jobs() / f"{job_id}.json"


def _newest_first() -> list[Path]:
    times = {}
    for file in places.jobs().glob("*.json"):
        with suppress(FileNotFoundError):  # other servers remove files as well
            times[file] = file.stat().st_mtime
    return sorted(times, key=times.__getitem__, reverse=True)
