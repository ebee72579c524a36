"""Caches, free space, run folders and locks."""

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pytorch_to_triton import places
from pytorch_to_triton.doctor.gpu import process_name
from pytorch_to_triton.doctor.outcomes import CheckOutcome, absent, broken, doubtful, fine, gib

_WALK_SECONDS = 1.5
_LITTLE, _TOO_LITTLE = 5 << 30, 256 << 20
_LARGE = 20 << 30
_MANY = 1000


@dataclass(frozen=True)
class FolderState:
    """A folder that is written to."""

    path: Path
    problem: str
    """Why nothing can be written there; empty where it can."""
    bytes: int
    files: int
    whole: bool
    """All of it was counted; else there was no time."""
    free_bytes: int
    runs_code: bool
    """Libraries in it may be loaded: its file system is not mounted noexec."""


@dataclass(frozen=True)
class HeldLock:
    """A device that another process uses alone."""

    device: str
    holder: str


def read_folder(path: Path) -> FolderState:
    """A folder's state; it need not exist, and is not made."""
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    total, files, whole = measure(path)
    status = os.statvfs(existing)
    return FolderState(
        path=path,
        problem=writing_problem(existing),
        bytes=total,
        files=files,
        whole=whole,
        free_bytes=shutil.disk_usage(existing).free,
        runs_code=not status.f_flag & os.ST_NOEXEC,
    )


def writing_problem(folder: Path) -> str:
    """Why no file can be written there; empty where it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"doctor")
            file.flush()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return ""


def measure(path: Path) -> tuple[int, int, bool]:
    """Bytes and files below it, as far as they can be counted quickly; whether that is all."""
    total = files = 0
    deadline = time.monotonic() + _WALK_SECONDS
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # it has been removed meanwhile
                continue
            files += 1
        if time.monotonic() > deadline:
            return total, files, False
    return total, files, True


def read_runs() -> int:
    """How many run folders there are."""
    return sum(1 for _ in places.runs().glob("[!.]*")) if places.runs().exists() else 0


def read_environments() -> Mapping[str, bool]:
    """The Pythons of the environments that launches made, a link each, and whether each is there."""
    links = [folder for folder in sorted((places.cache() / "environments").glob("*")) if folder.is_symlink()]
    pythons = [link / "bin" / "python" for link in links]
    return {str(python): python.exists() for python in pythons}


def read_locks() -> tuple[HeldLock, ...]:
    """The locks that are held at this moment; a lock ends with its process."""
    return tuple(
        HeldLock(file.stem, holder(file.with_suffix(".holder")))
        for file in sorted(places.locks().glob("*.lock"))
        if is_held(file)
    )


def is_held(file: Path) -> bool:
    """Whether somebody has the lock."""
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except (Timeout, OSError):
        return True
    lock.release()
    return False


def holder(file: Path) -> str:
    """`python3 (1234)`, as the file says."""
    try:
        pid = int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "a process"
    return f"{process_name(pid)} ({pid})"


def check_cache(
    cache: FolderState,
    unwritable: str = "Nothing can be written to the cache",
    variable: str = "PYTORCH_TO_TRITON_CACHE",
) -> CheckOutcome:
    """Whether results, tuned configurations and run folders can be kept; `variable` names another folder."""
    if cache.problem:
        fix = f"Make the folder writable for this user, or name another one with {variable}."
        return broken(f"{unwritable} ({cache.problem}).", fix)
    counted = f"{gib(cache.bytes)} in {cache.files} files in {cache.path}."
    seen = counted if cache.whole else f"More than {counted}"
    return doubtful(seen, f"Remove it: rm -r {cache.path}") if cache.bytes > _LARGE else fine(seen)


def check_triton_cache(folder: FolderState, *, gpu: bool) -> CheckOutcome:
    """Whether Triton can keep compiled kernels, and load what launches them."""
    if not folder.problem and not folder.runs_code and gpu:
        return broken(
            f"{folder.path} is on a file system that is mounted noexec, so no kernel can be launched.",
            "Name a folder elsewhere with TRITON_CACHE_DIR.",
        )
    return check_cache(folder, "Triton cannot keep compiled kernels", "TRITON_CACHE_DIR")


def check_space(folders: Sequence[FolderState]) -> CheckOutcome:
    """Whether there is room for compiled kernels and for the tensors of a validation."""
    least = min(folders, key=lambda folder: folder.free_bytes)
    seen = f"{gib(least.free_bytes)} are free on the disk of {least.path}."
    fix = "Make room there, or name folders elsewhere (PYTORCH_TO_TRITON_CACHE, TRITON_CACHE_DIR, TMPDIR)."
    if least.free_bytes < _TOO_LITTLE:
        return broken(seen, fix)
    return doubtful(seen, fix) if least.free_bytes < _LITTLE else fine(seen)


def check_runs(count: int) -> CheckOutcome:
    """Whether old run folders are removed as they should be."""
    if count > _MANY:
        return doubtful(
            f"{count} run folders lie in {places.runs()}; old ones should have been removed.",
            f"Remove them while nothing runs: rm -r {places.runs()}",
        )
    return fine(f"{count} run folders are kept; the oldest make room for new ones.")


def check_environments(environments: Mapping[str, bool]) -> CheckOutcome:
    """Whether the environments that launches made are whole."""
    if gone := [python for python, is_there in environments.items() if not is_there]:
        return doubtful(
            f"{gone[0]}, which a launch made, is gone.",
            f"The next launch makes it again once this is gone: rm -r {places.cache() / 'environments'}",
        )
    if not environments:
        return absent("No launch from a checkout has had to make an environment.")
    return fine(f"Launches use {', '.join(environments)}.")


def check_locks(locks: Sequence[HeldLock]) -> CheckOutcome:
    """Whether somebody times on a device."""
    if locks:
        held_by = "; ".join(f"{lock.holder} holds {lock.device}" for lock in locks)
        return doubtful(f"{held_by}.", "Wait for it to end, or end it: others wait as long as it runs.")
    return fine("No benchmark holds a device.")
