"""What a tool is, to both faces: its name, its function, and what it may change."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, create_model

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.names import ANYWHERE, Boundary

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from pytorch_to_triton.jobs.client import WorkerClient
    from pytorch_to_triton.jobs.progress import ProgressListener


@dataclass(frozen=True)
class ToolCall:
    """What every call of a tool gets besides its arguments."""

    worker: "WorkerClient"
    listener: "ProgressListener"
    boundary: Boundary = ANYWHERE
    """Which folders its arguments may name."""
    python: str | None = None
    """Runs kernels unless the call names another; None: the one that runs this."""


@dataclass(frozen=True)
class Tool:
    """One tool, as both faces need it."""

    function: Callable[..., Awaitable[Any]]
    """Takes a ToolCall and the tool's arguments; returns a Value with `summary` and `next_step`."""
    title: str
    is_yes: Callable[[Any], bool] = lambda result: True
    """Whether a result means yes (exit status 0) or no (1)."""
    read_only: bool = False
    """It changes nothing, runs none of the user's code and starts no program that the call names."""
    destructive: bool = False
    """It may overwrite files that it did not write itself."""
    idempotent: bool = False
    """The same call once more changes nothing more."""
    open_world: bool = False
    """It contacts servers on the internet."""
    when_interrupted: str = "Run it again."
    """What Ctrl-C leaves of a call, and how to go on."""

    @property
    def name(self) -> str:
        """The function's. An underscore is a space on the command line: docs_search is `docs search`."""
        return self.function.__name__

    @property
    def toolset(self) -> str:
        """The set that it belongs to: docs_search is one of `docs`."""
        return self.name.partition("_")[0]

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The function's parameters without the call."""
        return tuple(inspect.signature(self.function).parameters.values())[1:]

    def check_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in their types, without those left at their defaults. Raises BadInput."""
        fields: dict[str, Any] = {
            parameter.name: (
                parameter.annotation,
                ... if parameter.default is parameter.empty else parameter.default,
            )
            for parameter in self.parameters
        }
        model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        try:
            checked = model.model_validate(arguments)
        except ValidationError as error:
            raise refusal_of(error, self.name, fields) from error
        return {name: getattr(checked, name) for name in checked.model_fields_set}


def refusal_of(error: ValidationError, tool: str, names: Iterable[str]) -> BadInput:
    """What is wrong with a tool's arguments, one line each; `names` are the ones it takes."""
    names = [*names]
    lines = dict.fromkeys(f"{name_of(fault)}: {what_is_wrong(fault, names)}" for fault in error.errors())
    return BadInput("\n".join(lines), f"{tool} takes {', '.join(names) or 'no arguments'}.")


def name_of(fault: "ErrorDetails") -> str:
    """The argument, and where in it: `dim.0`; a name that the caller made up is cut."""
    name = ".".join(str(part) for part in fault["loc"])
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def what_is_wrong(fault: "ErrorDetails", names: Sequence[str]) -> str:
    """In the words of JSON, which a caller writes, not of the types behind it: the end of a sentence."""
    argument = str(fault["loc"][0]) if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        return f"no such argument{meant(argument, names)}"
    wanted = next((text for begin, text in _WANTED.items() if fault["type"].startswith(begin)), None)
    example = f' such as ["{_EXAMPLES[argument]}"]' if wanted == _LIST and argument in _EXAMPLES else ""
    return f"{wanted or fault['msg'].replace('Input should', 'it should')}{example}."


def meant(name: str, known: Sequence[str], dashes: str = "") -> str:
    """The end of a sentence on a name that is not known: `; did you mean seed?`, or a full stop."""
    other = _OTHER_NAMES.get(name)
    near = [other] if other in known else get_close_matches(name, known, n=1)
    return f"; did you mean {dashes}{near[0]}?" if near else "."


_LONGEST_NAME = 60
_LIST = "it should be a list of strings"
_WANTED = {
    "missing": "it is required",
    "tuple": _LIST,
    "list": _LIST,
    "string": "it should be a string",
    "bool": "it should be true or false",
    "int_": "it should be a whole number",
    "float_": "it should be a number",
}
"""By the beginning of pydantic's name for the error."""
_EXAMPLES = {
    "dim": "M=1,7",
    "input": "x=float32[M,N]",
    "at": "M=8192,N=4096",
    "require": "N % 8 == 0",
}
"""An element of each list whose elements have a form of their own."""
_OTHER_NAMES = {"report": "into", "out": "into", "output": "into"}
"""What other programs call it."""
