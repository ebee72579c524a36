"""A call of this project as it would be typed: the program, inputs and dims."""

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

NAME = "pytorch-to-triton"


def program() -> list[str]:
    """What starts this program from any folder: its name where a shell finds it, else its path."""
    script = Path(sys.executable).with_name(NAME)
    found = shutil.which(NAME)
    if found is not None and Path(found).parent.resolve() == script.parent.resolve():
        return [NAME]
    return [str(script)] if script.is_file() else [sys.executable, "-m", "pytorch_to_triton_server"]


def assignments(option: str, values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={spelled(value)}")]


def repeated(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def spelled(value: object) -> str:
    """A value as the option's grammar reads it."""
    return "[" + ",".join(map(spelled, value)) + "]" if isinstance(value, list | tuple) else str(value)
