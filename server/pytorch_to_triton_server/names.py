"""What a caller names: targets, files and folders, over MCP those that the server was given alone."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput, TargetNotFound

if TYPE_CHECKING:
    from pytorch_to_triton.schema.target import Target

_SHIPPED = ("reference_kernels", "docs_cache/guides", "references")
DeviceChoice = Literal["auto", "cuda", "interpreter"]
_ECHOED = 200
"""The most characters of a caller's text that a message repeats."""
_FORM = "A target is `path.py`, or `path.py:name` for one function or nn.Module in it."


@dataclass(frozen=True)
class Boundary:
    """Folders whose files may be read and written; this project's own may be read as well.

    It holds for the paths that a call names, symbolic links followed. Code that a call runs has all the
    rights of its user.
    """

    roots: tuple[Path, ...]
    """Real paths."""

    @classmethod
    def around(cls, folders: Iterable[Path]) -> "Boundary":
        """The boundary of these folders, each as a real path."""
        return cls(tuple(dict.fromkeys(real(folder) for folder in folders)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.roots))

    def readable(self, path: Path) -> Path:
        """The path itself. Raises BadInput where its real path lies elsewhere."""
        shipped = (*map(places.shipped, _SHIPPED), places.results(), places.runs())
        return self._inside(path, (*self.roots, *map(real, shipped)))

    def writable(self, path: Path) -> Path:
        """The path itself. Raises BadInput where its real path lies elsewhere."""
        return self._inside(path, self.roots)

    def holds(self, path: Path) -> bool:
        """Whether the path's real path lies in one of the folders."""
        return places.lies_in(path, self.roots)

    def _inside(self, path: Path, folders: Iterable[Path]) -> Path:
        if places.lies_in(path, folders):
            return path
        where = real(path)
        leads = f" leads to {where}, which" if where != path else ""
        raise BadInput(
            f"{path}{leads} lies outside of the folders that this server may use: {self}.",
            "Name a path in one of them; the server's option --allow-dir adds a folder.",
        )


ANYWHERE = Boundary((Path("/"),))


def real(path: Path) -> Path:
    """With every symbolic link followed, whether or not it exists."""
    return Path(os.path.realpath(path))


def target_of(text: str, boundary: Boundary) -> "Target":
    """`path.py` or `path.py:name`, relative to the current folder; a file's only function needs no name.

    Raises BadInput for any other form and outside of the boundary, TargetNotFound if there is no such file,
    and no such name in it as far as its text tells.
    """
    from pytorch_to_triton.places import SOURCE_BYTES
    from pytorch_to_triton.schema.target import Target
    from pytorch_to_triton.targets.names_in_text import refuse_absent_name, with_only_function

    path, colon, name = text.rpartition(":")
    if not colon:
        path, name = text, ""
    elif not name.isidentifier() or len(name) > _ECHOED:
        raise BadInput(f"{brief(name)} in {brief(text)} is not the name of a function or class.", _FORM)
    file = boundary.readable(path_of(path))
    if not file.is_file():
        raise TargetNotFound(f"{file} {why_no_file(file)}.", f"Check the path. {_FORM}")
    if file.stat().st_size > SOURCE_BYTES:
        raise BadInput(f"{file} is larger than {SOURCE_BYTES >> 20} MiB.", f"Name a source file. {_FORM}")
    target = Target(path=file, name=name or None)
    refuse_absent_name(target)
    return with_only_function(target)


def why_no_file(path: Path) -> str:
    """Why a path names no regular file."""
    if path.is_dir():
        return "is a folder, not a file"
    return "is not a regular file" if path.exists() else "does not exist"


def path_of(text: str) -> Path:
    """An absolute path, whether or not it exists.

    Raises BadInput for what cannot be one: a name that is too long, a loop of symbolic links, bytes that are
    not text.
    """
    try:
        text.encode()
        path = Path(text).expanduser().absolute()
        path.stat()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"The path {brief(text)} is not text in UTF-8.", "Rename the file, or check the path."
        ) from error
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{brief(text)} is not a usable path: {why}.", "Check the path.") from error
    return path


def brief(text: str) -> str:
    """A caller's text in quotation marks, cut if it is long."""
    return repr(text if len(text) <= _ECHOED else f"{text[:_ECHOED]}…")


def place_of(text: str, boundary: Boundary) -> "Target":
    """A folder, or what `target_of` reads; raises as it does."""
    from pytorch_to_triton.schema.target import Target

    folder = path_of(text)
    if folder.is_dir():
        return Target(path=boundary.readable(folder))
    return target_of(text, boundary)


def folder_of(text: str | None, boundary: Boundary, usual: str = ".") -> Path | None:
    """A folder for results, relative to the current one; it need not exist. None: one in the `usual` folder.

    Raises BadInput for a file, for a path below a file, and outside of the boundary.
    """
    if text is None:
        default = Path(usual).absolute()
        if boundary.holds(default):
            return None
        raise BadInput(
            f"Without --into the result goes into {default}, which lies outside of the folders that this "
            f"server may use: {boundary}.",
            "Name a folder in one of them with --into; the server's option --allow-dir adds a folder.",
        )
    folder = boundary.writable(path_of(text))
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise BadInput(f"{existing} is a file.", "Name a folder for the results; it need not exist.")
    return folder


def file_of(text: str | None, boundary: Boundary) -> Path | None:
    """A Python file to write, relative to the current folder.

    Raises BadInput if it cannot be written, and outside of the boundary.
    """
    if text is None:
        return None
    file = boundary.writable(path_of(text))
    if file.suffix != ".py" or file.is_dir() or not file.parent.is_dir():
        raise BadInput(f"{file} cannot be written.", "Name a .py file in a folder that exists.")
    return file
