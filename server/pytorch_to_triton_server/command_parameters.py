"""What a command takes, read from its function's annotations, for pages of help and for completion."""

import inspect
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


@dataclass(frozen=True)
class CommandParameter:
    """An argument or an option of a command."""

    names: tuple[str, ...]
    """`--fail-on`; several where one takes back another; of an argument `KERNEL`."""
    variable: str
    """`fail_on`, `kernel`."""
    explanation: str
    positional: bool
    kind: type
    """bool: an option that no value follows."""
    repeated: bool
    choices: tuple[str, ...]
    """The words that it takes; empty where it takes any."""
    default: str
    """Empty where there is none worth saying."""


def parameters_of(command: Any) -> list[CommandParameter]:
    """Of one of click's commands, in their order; `--help` is not among them."""
    annotated = inspect.signature(command.callback).parameters if command.callback else {}
    return [
        described(one, annotated[one.name].annotation)
        for one in command.params
        if one.name in annotated and not getattr(one, "hidden", False)
    ]


def described(parameter: Any, annotation: Any) -> CommandParameter:
    """What click and the annotation say of one parameter."""
    positional = parameter.param_type_name == "argument"
    meant = without_none(get_args(annotation)[0])
    repeated = get_origin(meant) is list
    kind = without_none(get_args(meant)[0] if repeated else meant)
    choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
    default = parameter.default
    return CommandParameter(
        names=(str(parameter.name).upper(),) if positional else (*parameter.opts, *parameter.secondary_opts),
        variable=str(parameter.name),
        explanation=parameter.help or "",
        positional=positional,
        kind=kind if isinstance(kind, type) else str,
        repeated=repeated,
        choices=choices,
        default=f"{default:g}" if type(default) is float else str(default) if default else "",
    )


def without_none(kind: Any) -> Any:
    """`str` of `str | None`; a union of literals that allows None as one Literal."""
    if get_origin(kind) in (Union, UnionType):
        return next(one for one in get_args(kind) if one is not NoneType)
    return kind
