"""A session's folder: `session.json`, the stages' files to edit, and every attempt in a folder of its own.

An attempt appears whole or not at all: its folder is written beside the others and renamed. So a process may
end at any moment, and the next one finds the session as it was before or after. Where it
stands follows from its attempts alone.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.convert.request import LAST, ConversionRequest
from pytorch_to_triton.draft.file.module import STAGE_NAMES
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.finding import AuditReport
from pytorch_to_triton.schema.session import Attempt, Stage, Understanding
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Verdict

RECORD = "session.json"
ATTEMPTS = "attempts"
KERNEL = "kernel.py"
VERDICT = "attempt.json"
VALIDATION, AUDIT = "validation.json", "audit.json"
"""What validate and audit said of it, in full, where they were asked."""
LOCK = ".lock"
BENCHMARK = "benchmark"
"""The folder of the sweep over sizes that `convert finish` measures."""
DEFAULT = Path("sessions")
"""Below the current folder."""
RECORD_BYTES = 64 << 20
"""More than any file of a session has that this program wrote."""
Kept = TypeVar("Kept", bound=Value)


class Setting(ConversionRequest):
    """How a session's target is called, traced and checked; the same in every stage."""

    device: Literal["auto", "cuda", "interpreter"]
    """As asked for."""
    python: str | None
    archs: tuple[str, ...] = ()
    """GPUs that every stage is compiled for; empty: one of NVIDIA and one of AMD."""

    @property
    def at(self) -> tuple[str, ...]:
        """The sizes that matter, as they are named: `M=8192,N=4096`."""
        return tuple(",".join(f"{name}={size}" for name, size in point.items()) for point in self.points)


class SessionRecord(Value):
    """What a session starts from."""

    format: int = 2
    setting: Setting
    target_digest: str
    """Of the target's file: what was understood holds for that."""
    understood: Understanding
    drafted: Mapping[int, str] = {}
    """By stage, the digest of the draft that was put into its file: what differs is somebody's own."""
    put: Mapping[int, str] = {}
    """By stage, the digest of whatever was put into its file: as long as it is that, it may be replaced."""
    allowed: tuple[str, ...] = ()
    """Operators that drafts leave to PyTorch."""

    def with_points(self, points: tuple[Point, ...]) -> SessionRecord:
        """The same with other sizes that matter."""
        return self.model_copy(update={"setting": self.setting.model_copy(update={"points": points})})


@dataclass(frozen=True)
class SessionFolder:
    """One session on disk."""

    path: Path

    def record(self) -> SessionRecord:
        """Raises BadInput where this is no session, or one of another version of this program."""
        try:
            return read_value(
                SessionRecord,
                self.path / RECORD,
                "It may be of another version of this program: start again; attempts stay where they are.",
            )
        except FileNotFoundError as problem:
            raise BadInput(
                f"{self.path} holds no session.",
                "`convert list` names the sessions here; `convert start` opens one.",
            ) from problem

    def write(self, record: SessionRecord) -> None:
        """Write the record, whole or not at all."""
        places.write_atomically(self.path / RECORD, record.model_dump_json(indent=2))

    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts, in order. Raises BadInput where one is damaged."""
        files = sorted((self.path / ATTEMPTS).glob(f"[0-9]*/{VERDICT}"))
        return tuple(map(read_attempt, files))

    def parts(self) -> Iterator[Path]:
        """What lies in it, down to the files of the attempts."""
        for pattern in ("*", f"{ATTEMPTS}/*", f"{ATTEMPTS}/*/*"):
            yield from self.path.glob(pattern)

    def file(self, stage: Stage) -> Path:
        """What is edited and submitted for a stage."""
        return self.path / f"stage{stage}_{STAGE_NAMES[stage]}.py"

    def kernel(self, attempt: Attempt) -> Path:
        """The kept copy of what was submitted."""
        return self.path / attempt.file

    def text(self, attempt: Attempt) -> str:
        """What was submitted."""
        return self.kernel(attempt).read_text(encoding="utf-8")

    def opened_stages(self) -> Iterator[tuple[Attempt, str]]:
        """The attempts behind the best one, a stage each, with their texts; the best one is the last."""
        best = best_of(self.attempts())
        last = {
            attempt.stage: attempt
            for attempt in self.attempts()
            if attempt.opened and best and attempt.stage <= best.stage
        }
        for stage in sorted(last):
            attempt = best if best and stage == best.stage else last[stage]
            yield attempt, self.text(attempt)

    def next_number(self) -> int:
        return 1 + max((attempt.number for attempt in self.attempts()), default=0)

    def validation(self, attempt: Attempt) -> Verdict | None:
        """What validate said of an attempt; None where it was not asked. Raises BadInput where damaged."""
        file = self.kernel(attempt).with_name(VALIDATION)
        return read_value(Verdict, file, without_it(file)) if file.is_file() else None

    def audit(self, attempt: Attempt) -> AuditReport | None:
        """What audit said of an attempt; None where it was not asked. Raises BadInput where damaged."""
        file = self.kernel(attempt).with_name(AUDIT)
        return read_value(AuditReport, file, without_it(file)) if file.is_file() else None

    def keep(
        self,
        attempt: Attempt,
        text: str,
        validation: Verdict | None = None,
        audit: AuditReport | None = None,
    ) -> None:
        """Add an attempt with what was submitted, and what was said of it."""
        folder = self.path / ATTEMPTS / f"{attempt.number:04}"
        beside = folder.with_name(f".{folder.name}{places.UNFINISHED}")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        (beside / KERNEL).write_text(text, encoding="utf-8")
        for name, value in ((VALIDATION, validation), (AUDIT, audit)):
            if value is not None:
                (beside / name).write_text(value.model_dump_json(), encoding="utf-8")
        (beside / VERDICT).write_text(attempt.model_dump_json(indent=2), encoding="utf-8")
        beside.rename(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One submission at a time. Raises BadInput where another process has it; a dead one has nothing."""
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout as problem:
            raise BadInput(
                f"Another call is at work in {self.path}.", "Wait until it has ended, or cancel it."
            ) from problem
        try:
            yield
        finally:
            lock.release()


def attempt_path(number: int) -> Path:
    """Where an attempt's file is kept, relative to the session's folder."""
    return Path(ATTEMPTS) / f"{number:04}" / KERNEL


def read_attempt(file: Path) -> Attempt:
    """The attempt that a folder keeps. Raises BadInput for what was not written for that folder."""
    attempt = read_value(Attempt, file, without_it(file))
    expected = Path(ATTEMPTS) / file.parent.name / KERNEL
    if not attempt.file == expected == attempt_path(attempt.number):
        raise BadInput(
            f"{file} is of another attempt, or names a file that is not its own.", without_it(file)
        )
    return attempt


def read_value(model: type[Kept], file: Path, hint: str) -> Kept:
    """A value from its file. Raises FileNotFoundError, and BadInput for what is no such value."""
    try:
        return model.model_validate_json(places.read_regular(file, RECORD_BYTES))
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise BadInput(f"{file} cannot be read: {problem.strerror}.", hint) from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        what = ": ".join([*map(str, first["loc"]), first["msg"]])
        raise BadInput(f"{file} is damaged: {what}.", hint) from problem


def without_it(file: Path) -> str:
    """What to do about a damaged file of an attempt."""
    return f"Move {file.parent} elsewhere: the session goes on without that attempt."


def open_session(path: Path) -> SessionFolder:
    """The session in a folder. Raises BadInput where there is none."""
    folder = SessionFolder(path)
    folder.record()
    return folder


def sessions_below(path: Path) -> list[SessionFolder]:
    """All sessions in a folder and in the folders in it."""
    return [SessionFolder(file.parent) for file in sorted({*path.glob(RECORD), *path.glob(f"*/{RECORD}")})]


def new_folder(path: Path | None, name: str) -> Path:
    """An empty folder for a session, made: `sessions/NAME` by default, with a number where that is taken.

    Raises BadInput for a folder that holds anything.
    """
    if path is not None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(
                f"{path} is not empty.", "Name a new folder with --into; `convert status` looks at a session."
            )
        path.mkdir(parents=True, exist_ok=True)
        return path
    for number in range(1, 10_000):
        candidate = (DEFAULT / (name if number == 1 else f"{name}-{number}")).absolute()
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            continue
        return candidate
    raise BadInput(f"{DEFAULT} holds too many sessions of {name}.", "Drop some: `convert drop FOLDER`.")


def drop(folder: SessionFolder) -> int:
    """Remove a session with all that is in it; the number of its attempts.

    Raises BadInput where it holds what a session does not.
    """
    folder.record()
    attempts = len([*(folder.path / ATTEMPTS).glob(f"[0-9]*/{VERDICT}")])
    ours = {
        RECORD,
        ATTEMPTS,
        LOCK,
        "tuning",
        BENCHMARK,
        "__pycache__",
        *(folder.file(s).name for s in STAGE_NAMES),
    }
    others = [
        name for name in os.listdir(folder.path) if name not in ours and not name.endswith(places.UNFINISHED)
    ]
    if others:
        raise BadInput(
            f"{folder.path} also holds {', '.join(sorted(others)[:5])}, which no session wrote.",
            "Move that elsewhere, then drop the session again.",
        )
    with folder.locked():
        shutil.rmtree(folder.path)
    return attempts


def now() -> str:
    """The time in UTC, as attempts have it."""
    return datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")


STAGES: tuple[Stage, ...] = (1, 2, 3)


def stage_of(attempts: Sequence[Attempt]) -> Stage:
    """The stage whose gate is next: behind the last one that opened; the last one stays."""
    best = best_of(attempts)
    if best is None:
        return 1
    return LAST if best.stage == LAST else (2, 3)[best.stage - 1]


def best_of(attempts: Sequence[Attempt]) -> Attempt | None:
    """The last attempt whose gate opened, or that was restored."""
    return next((attempt for attempt in reversed(attempts) if attempt.opened), None)


def before(attempts: Sequence[Attempt], stage: Stage) -> Attempt | None:
    """The attempt that `stage` is compared with: the last opened one of an earlier stage."""
    return next((attempt for attempt in reversed(attempts) if attempt.opened and attempt.stage < stage), None)
