"""Folders that a candidate must not read, or must not write to."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from .frames import below

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNNAMED = getattr(os, "O_TMPFILE", -1)
"""The path is a folder then, and what is opened a new file without a name in it."""
BYTECODE = f"{os.sep}__pycache__{os.sep}"


@dataclass(frozen=True)
class Folders:
    """`secret` folders are closed, `kept` ones are read only; both are real paths."""

    secret: tuple[str, ...]
    kept: tuple[str, ...]

    @classmethod
    def at(cls, secret: Sequence[Path], kept: Sequence[Path]) -> "Folders":
        return cls(*(tuple(os.path.realpath(folder) for folder in folders) for folders in (secret, kept)))

    def opening(self, path: object, flags: int, frame: FrameType) -> str | None:
        """What is wrong with opening `path`; None where nothing is, as for what holds no path."""
        writing = bool(flags & _WRITING)
        for real in places(path, -1):
            if is_memory(real):
                return f"opens {real}"
            if (self._closed(real) or (writing and self._read_only(real))) and not is_bytecode(real, frame):
                return f"opens {real}{' for writing' if writing else ''}"
        return None

    def reaching(self, path: object, flags: int) -> str | None:
        """What is wrong with a descriptor of a folder: paths relative to it raise events that hide it."""
        if flags & _UNNAMED == _UNNAMED:
            return None
        folders = (real for real in places(path, -1) if os.path.isdir(real) and self._above(real))
        return next((f"opens the folder {real}, which holds others closed to it" for real in folders), None)

    def listing(self, path: object) -> str | None:
        """What is wrong with listing a folder."""
        return next((f"lists {real}" for real in places(path, -1) if self._closed(real)), None)

    def changing(self, verb: str, path: object, dir_fd: object, frame: FrameType) -> str | None:
        """What is wrong with removing, renaming or making `path`."""
        for real in places(path, dir_fd):
            if (self._closed(real) or self._read_only(real)) and not is_bytecode(real, frame):
                return f"{verb} {real}"
        return None

    def _closed(self, real: str) -> bool:
        return any(below(real, folder) for folder in self.secret)

    def _read_only(self, real: str) -> bool:
        return any(below(real, folder) for folder in self.kept)

    def _above(self, real: str) -> bool:
        """Whether `path` relative to the open folder could reach a closed one."""
        return any(below(folder, real) for folder in (*self.secret, *self.kept))


def places(path: object, dir_fd: object) -> set[str]:
    """The real paths that an event's path may mean: itself, and what it links to."""
    text = plain_text(path)
    if text is None:
        return set()
    if isinstance(dir_fd, int) and dir_fd >= 0 and not os.path.isabs(text):
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{dir_fd}"), text)
    folder, name = os.path.split(text)
    return {os.path.realpath(text), os.path.join(os.path.realpath(folder or os.curdir), name)}


def plain_text(path: object) -> str | None:
    """The path as a plain str, without running a method of the author's. None for a descriptor."""
    if isinstance(path, str):
        return str.__str__(path)
    if isinstance(path, bytes):
        return bytes.__getitem__(path, slice(None)).decode("utf-8", "surrogateescape")
    if isinstance(path, Path):
        return os.fspath(path) if type(path).__module__.startswith("pathlib") else None
    return None


def is_memory(real: str) -> bool:
    return real.startswith("/proc/") and real.endswith("/mem")


def is_bytecode(real: str, frame: FrameType) -> bool:
    """Whether Python itself caches a module that is being imported."""
    return BYTECODE in real + os.sep and frame.f_code.co_filename == "<frozen importlib._bootstrap_external>"
