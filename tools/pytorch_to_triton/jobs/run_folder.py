"""One folder a job: what was asked, what came back, what was printed. Capped, so that they never pile up."""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytorch_to_triton.jobs.no_answer import cache_required
from pytorch_to_triton.schema.job import Job, Runtime

_REQUEST = "job.json"


@dataclass(frozen=True)
class RunFolders:
    """All run folders below `root`: at most `max_folders` of them and at most `max_bytes` in all.

    A folder in use is never removed, so the caps are exceeded while that many jobs run.
    """

    root: Path
    max_folders: int = 200
    max_bytes: int = 8 << 30

    @contextmanager
    def new(self, job: Job, runtime: Runtime) -> Iterator[Path]:
        """A new folder that holds `job.json`; in use until the block ends, and left there.

        Raises MissingRequirement where the cache cannot be written to.
        """
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        folder = self.root / f"{now}-{Path(job.kind).stem}-{secrets.token_hex(3)}"
        # Hidden until it is in use: another process that makes room must not take it for an old one.
        unfinished = folder.with_name(f".{folder.name}")
        request = {**job.model_dump(mode="json"), "runtime": runtime.model_dump(mode="json")}
        with cache_required():
            unfinished.mkdir(parents=True)
            (unfinished / _REQUEST).write_text(json.dumps(request, allow_nan=False), encoding="utf-8")
        with in_use(unfinished):
            unfinished.rename(folder)
            yield folder

    def make_room(self) -> None:
        """Remove the oldest folders that are not in use, until one more fits."""
        folders = sorted(self.root.glob("[!.]*")) if self.root.exists() else []  # names begin with the time
        sizes = [_bytes_in(folder) for folder in folders]
        count, total = len(folders), sum(sizes)
        for folder, size in zip(folders, sizes, strict=True):
            if count < self.max_folders and total <= self.max_bytes:
                return
            if _remove_unused(folder):
                count, total = count - 1, total - size


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Keep a run folder from being removed, by this process or another, until the block ends.

    In use means: somebody holds a shared lock on its `job.json`. The lock goes with the process that has it.
    """
    with (folder / _REQUEST).open("rb") as request:
        fcntl.flock(request, fcntl.LOCK_SH)
        yield


def _remove_unused(folder: Path) -> bool:
    """Remove the folder unless it is in use or not yet filled; True when it is gone."""
    try:
        with (folder / _REQUEST).open("r+b") as request:
            fcntl.flock(request, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    return not folder.exists()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with suppress(FileNotFoundError):  # others make room as well
                total += os.lstat(os.path.join(path, file)).st_size
    return total
