"""What a tool is, to both faces: its name, its function, and what it may change."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, create_model

from pytorch_to_triton.errors import BadInput

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient
    from pytorch_to_triton.jobs.progress import ProgressListener


@dataclass(frozen=True)
class ToolCall:
    """What every call of a tool gets besides its arguments."""

    worker: "WorkerClient"
    listener: "ProgressListener"
    unattended: bool = False
    """Nobody may have approved the call, so it must not start a program that it names: editors call
    read-only tools without asking."""


@dataclass(frozen=True)
class Tool:
    """One tool, as both faces need it."""

    name: str
    """An underscore is a space on the command line: docs_search is `docs search`."""
    title: str
    function: Callable[..., Awaitable[Any]]
    """Takes a ToolCall and the tool's arguments; returns a Value with `summary` and `next_step`."""
    is_yes: Callable[[Any], bool] = lambda result: True
    """Whether a result means yes (exit status 0) or no (1)."""
    read_only: bool = False
    """It changes nothing, runs none of the user's code and, over MCP, starts no program named in the call."""
    destructive: bool = False
    """It may overwrite files that it did not write itself."""
    open_world: bool = False
    """It contacts servers on the internet."""

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The function's parameters without the call."""
        return tuple(inspect.signature(self.function).parameters.values())[1:]

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
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
    lines = []
    for fault in error.errors():
        name = ".".join(str(part) for part in fault["loc"])
        unknown = fault["type"] == "extra_forbidden"
        lines.append(f"{name}: {'no such argument' if unknown else fault['msg']}.")
    return BadInput("\n".join(lines), f"{tool} takes {', '.join(names) or 'no arguments'}.")
