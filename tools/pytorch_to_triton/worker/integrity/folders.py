"""Folders that a candidate must not read, or must not write to."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from .frames import below

BYTECODE = f"{os.sep}__pycache__{os.sep}"


@dataclass(frozen=True)
class Folders:
    """`secret` folders are closed, `kept` ones are read only; both are real paths."""

    secret: tuple[str, ...]
    kept: tuple[str, ...]

    @classmethod
    def at(cls, secret: Sequence[Path], kept: Sequence[Path]) -> "Folders":
        return cls(*(tuple(os.path.realpath(folder) for folder in folders) for folders in (secret, kept)))

    def refused(self, path: object, frame: FrameType, *, writing: bool) -> str | None:
        """The real path, where it is not to be opened or, when writing, not to be changed."""
        folders = (*self.secret, *self.kept) if writing else self.secret
        real = first_below(path, folders)
        return None if real is None or is_bytecode(real, frame) else real


def first_below(path: object, folders: Sequence[str]) -> str | None:
    """Where a path or what it links to lies in one of the folders; None for what holds no path."""
    text = plain_text(path)
    if text is None:
        return None
    folder, name = os.path.split(text)
    places = os.path.realpath(text), os.path.join(os.path.realpath(folder or os.curdir), name)
    return next((real for real in places if any(below(real, each) for each in folders)), None)


def plain_text(path: object) -> str | None:
    """The path as a plain str, without running a method of the author's. None for a descriptor."""
    if isinstance(path, str):
        return str.__str__(path)
    if isinstance(path, bytes):
        return bytes.__getitem__(path, slice(None)).decode("utf-8", "surrogateescape")
    if isinstance(path, Path):
        return os.fspath(path) if type(path).__module__.startswith("pathlib") else None
    return None


def is_bytecode(real: str, frame: FrameType) -> bool:
    """Whether Python itself caches a module that is being imported."""
    return BYTECODE in real + os.sep and frame.f_code.co_filename == "<frozen importlib._bootstrap_external>"
