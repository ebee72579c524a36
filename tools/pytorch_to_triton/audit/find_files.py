"""Which files an audit reads."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from pytorch_to_triton.errors import TargetNotFound

ROOT_MARKS = ("pyproject.toml", ".git")


@dataclass(frozen=True)
class FilesToAudit:
    """Real paths, each once."""

    named: tuple[Path, ...]
    """Files that the request names."""
    found: tuple[Path, ...]
    """*.py files in the folders that it names."""


def find_files(paths: Sequence[Path], exclude: Sequence[str] = ()) -> FilesToAudit:
    """The named files, and the Python files in the named folders.

    `exclude` holds patterns such as `tests/*` for paths below a named folder. Raises TargetNotFound.
    """
    named: dict[Path, None] = {}
    files: dict[Path, None] = {}
    for path in paths:
        whole = path.resolve()
        if whole.is_dir():
            below = (file for file in _below(whole) if not _is_excluded(file, whole, exclude))
            files.update(dict.fromkeys(below))
        elif whole.is_file():
            named[whole] = None
        else:
            raise TargetNotFound(f"{path} does not exist.", "Name Python files, or folders that hold them.")
    return FilesToAudit(tuple(named), tuple(path for path in files if path not in named))


def printable(path: Path) -> Path:
    """The path as UTF-8 text; bytes that are not valid UTF-8 become `\\udcff` escapes."""
    return Path(str(path).encode(errors="backslashreplace").decode())


def relative(path: Path, folder: Path) -> str:
    """The path below `folder`, with forward slashes; the whole path where it lies elsewhere."""
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def root_of(path: Path) -> Path:
    """The project's folder: the nearest one above with a pyproject.toml or .git, else the path's own."""
    own = path if path.is_dir() else path.parent
    return next((f for f in (own, *own.parents) if any((f / mark).exists() for mark in ROOT_MARKS)), own)


def _below(folder: Path) -> Iterator[Path]:
    """The *.py files in and below a folder, except in hidden folders and virtual environments.

    A link to a file elsewhere is not followed: that file is not in the folder.
    """
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        paths = (Path(place, name) for name in sorted(files) if name.endswith(".py"))
        whole = (path.resolve() for path in paths if os.path.isfile(path))
        yield from (path for path in whole if path.is_relative_to(folder))


def _is_excluded(path: Path, folder: Path, patterns: Sequence[str]) -> bool:
    below = os.path.relpath(path, folder).replace(os.sep, "/")
    return any(fnmatch(below, pattern) for pattern in patterns)
