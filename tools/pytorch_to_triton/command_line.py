"""A call of this project as it would be typed: the program, and the options that repeat a request."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

NAME = "pytorch-to-triton"
STARTED_AS = "PYTORCH_TO_TRITON_PROGRAM"
"""Set by the launcher of a checkout that is not installed: the command that starts this program, as JSON."""


@dataclass(frozen=True)
class Option:
    """Annotates a request's field whose option is not named after it."""

    name: str


NOT_REPEATED = Option("")
"""Annotates a request's field that a repeated call leaves at its default."""


def program() -> list[str]:
    """What starts this program from any folder: its name where a shell finds it, else its path."""
    if os.environ.get(STARTED_AS):
        return list(map(str, json.loads(os.environ[STARTED_AS])))
    script = Path(sys.executable).with_name(NAME)
    found = shutil.which(NAME)
    if found is not None and Path(found).parent.resolve() == script.parent.resolve():
        return [NAME]
    return [str(script)] if script.is_file() else [sys.executable, "-m", "pytorch_to_triton_server"]


def typed(*arguments: object) -> str:
    """The program with these arguments, quoted for a shell."""
    return shlex.join([*program(), *map(str, arguments)])


def replay(tool: str, request: Value, **changes: object) -> str:
    """The command that repeats the request; a field at its default is left out, a required one positional.

    `changes` replace fields or name further options, and come last.
    """
    fields = type(request).model_fields
    arguments: list[str] = []
    for name, field in fields.items():
        if field.is_required():
            arguments += _texts(getattr(request, name))
        elif name not in changes and getattr(request, name) != field.default:
            arguments += _words(option_of(type(request), name), getattr(request, name))
        if name == "options":  # one class may be constructed for several targets
            arguments += _words("init", tuple(dict.fromkeys(_init(request))))
    for name, value in changes.items():
        if name not in fields:
            arguments += _words(name, value)
        elif value != fields[name].default:
            arguments += _words(option_of(type(request), name), value)
    return typed(tool, *arguments)


def option_of(request: type[Value], field: str) -> str:
    """The name of the field's option, as the tool's parameter; empty where it has none."""
    annotated = (m for m in request.model_fields[field].metadata if isinstance(m, Option))
    return next(annotated, Option(field)).name


def _init(request: Value) -> Iterator[str]:
    for name in type(request).model_fields:
        value = getattr(request, name)
        for target in value if isinstance(value, tuple) else (value,):
            if isinstance(target, Target):
                yield from target.init


def _words(option: str, value: object) -> list[str]:
    flag = f"--{option.replace('_', '-')}"
    if isinstance(value, Options):
        given = {
            "--input": _assigned(value.inputs),
            "--dim": _assigned(value.dims),
            "--require": value.requires,
            "--compare": value.compare,
        }
        return [word for name, texts in given.items() for word in _repeated(name, texts)]
    if not option or value is None or value is False:
        return []
    return [flag] if value is True else _repeated(flag, _texts(value))


def _texts(value: object) -> list[str]:
    if isinstance(value, tuple | list):
        return [",".join(_assigned(each)) if isinstance(each, dict) else str(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    return [f"{value:g}" if isinstance(value, float) else str(value)]


def _assigned(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={spelled(value)}" for name, value in values.items()]


def _repeated(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def spelled(value: object) -> str:
    """A value as the option's grammar reads it."""
    return "[" + ",".join(map(spelled, value)) + "]" if isinstance(value, list | tuple) else str(value)
