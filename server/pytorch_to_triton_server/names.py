"""What a caller names: a target in a file, a folder, a device."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytorch_to_triton.errors import BadInput, TargetNotFound

if TYPE_CHECKING:
    from pytorch_to_triton.schema.target import Target

DeviceChoice = Literal["auto", "cuda", "interpreter"]

_ECHOED = 200
"""Characters of a caller's text that are said again."""
_FORM = "A target is `path.py`, or `path.py:name` for one function or nn.Module in it."


def target_of(text: str) -> "Target":
    """`path.py` or `path.py:name`, relative to the current folder.

    Raises BadInput where it reads otherwise, TargetNotFound where there is no such file.
    """
    from pytorch_to_triton.places import SOURCE_BYTES
    from pytorch_to_triton.schema.target import Target

    path, colon, name = text.rpartition(":")
    if not colon:
        path, name = text, ""
    elif not name.isidentifier():
        raise BadInput(f"{brief(name)} in {brief(text)} is not the name of a function or a class.", _FORM)
    file = path_of(path)
    if not file.is_file():
        raise TargetNotFound(f"{file} {lacking(file)}.", f"Check the path. {_FORM}")
    if file.stat().st_size > SOURCE_BYTES:
        raise BadInput(f"{file} has more than {SOURCE_BYTES >> 20} MiB.", f"Name a file of source. {_FORM}")
    return Target(path=file, name=name or None)


def lacking(path: Path) -> str:
    """Why a path names no regular file."""
    if path.is_dir():
        return "is a folder, not a file"
    return "is not a regular file" if path.exists() else "does not exist"


def path_of(text: str) -> Path:
    """An absolute path, of something that is there or not.

    Raises BadInput for what cannot be one: a name that is too long, a circle of symbolic links, bytes that
    are no text.
    """
    try:
        text.encode()
        path = Path(text).expanduser().absolute()
        path.stat()
    except UnicodeEncodeError as error:
        raise BadInput(f"The path {brief(text)} is not text in UTF-8.", "Rename it, or check it.") from error
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, RuntimeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{brief(text)} is not a path that can be used: {why}.", "Check the path.") from error
    return path


def brief(text: str) -> str:
    """A caller's text in quotation marks, a long one cut: messages are read by people."""
    return repr(text if len(text) <= _ECHOED else f"{text[:_ECHOED]}…")


def place_of(text: str) -> "Target":
    """A folder, or what `target_of` reads; raises as it does."""
    from pytorch_to_triton.schema.target import Target

    folder = path_of(text)
    return Target(path=folder) if folder.is_dir() else target_of(text)


def folder_of(text: str | None) -> Path | None:
    """A folder for results, relative to the current one; it need not exist. Raises BadInput for a file,
    and for what would lie in one.
    """
    if text is None:
        return None
    folder = path_of(text)
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        raise BadInput(f"{there} is a file.", "Name a folder for the results; it need not exist.")
    return folder


def file_of(text: str | None) -> Path | None:
    """A Python file to write, relative to the current folder. Raises BadInput where none can be written."""
    if text is None:
        return None
    file = path_of(text)
    if file.suffix != ".py" or file.is_dir() or not file.parent.is_dir():
        raise BadInput(f"{file} cannot be written.", "Name a .py file in a folder that exists.")
    return file
