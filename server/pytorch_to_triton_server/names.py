"""What a caller names: a target in a file, a folder, a device."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytorch_to_triton.errors import BadInput, TargetNotFound

if TYPE_CHECKING:
    from pytorch_to_triton.schema.target import Target

DeviceChoice = Literal["auto", "cuda", "interpreter"]

_FORM = "A target is `path.py`, or `path.py:name` for one function or nn.Module in it."


def target_of(text: str) -> "Target":
    """`path.py` or `path.py:name`, relative to the current folder.

    Raises BadInput where it reads otherwise, TargetNotFound where there is no such file.
    """
    from pytorch_to_triton.schema.target import Target

    path, colon, name = text.rpartition(":")
    if not colon:
        path, name = text, ""
    elif not name.isidentifier():
        raise BadInput(f"{name!r} in {text!r} is not the name of a function or a class.", _FORM)
    file = path_of(path)
    if not file.is_file():
        what = "is a folder, not a file" if file.is_dir() else "does not exist"
        raise TargetNotFound(f"{file} {what}.", f"Check the path. {_FORM}")
    return Target(path=file, name=name or None)


def path_of(text: str) -> Path:
    """An absolute path. Raises BadInput for what cannot be one, such as a name that is too long."""
    try:
        path = Path(text).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(f"{text!r} is not a path: {error}.", "Check the path.") from error
    return path


def place_of(text: str) -> "Target":
    """A folder, or what `target_of` reads; raises as it does."""
    from pytorch_to_triton.schema.target import Target

    folder = path_of(text)
    return Target(path=folder) if folder.is_dir() else target_of(text)


def folder_of(text: str | None) -> Path | None:
    """A folder for results, relative to the current one; it need not exist. Raises BadInput for a file."""
    if text is None:
        return None
    folder = Path(text).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file.", "Name a folder for the results; it need not exist.")
    return folder


def file_of(text: str | None) -> Path | None:
    """A Python file to write, relative to the current folder. Raises BadInput where none can be written."""
    if text is None:
        return None
    file = Path(text).expanduser().absolute()
    if file.suffix != ".py" or file.is_dir() or not file.parent.is_dir():
        raise BadInput(f"{file} cannot be written.", "Name a .py file in a folder that exists.")
    return file
