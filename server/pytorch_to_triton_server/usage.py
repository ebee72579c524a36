"""A command line that does not parse, said so that its author can correct it."""

from dataclasses import dataclass
from typing import Any

from pytorch_to_triton_server.command_classes import WHOLE
from pytorch_to_triton_server.help_page import usage as usage_of

_NAME = "pytorch-to-triton"
_PLAINLY = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number.",
    "Input should be a valid number, unable to parse string as a number": "it must be a number.",
    "Got unexpected extra argument(s)": "There are more arguments than the command takes:",
}
"""What the parser says, and what a person would."""


@dataclass(frozen=True)
class UsageMistake:
    """What is wrong with a command line, and what to do."""

    message: str
    hint: str
    usage: str = ""
    """What the command takes, in a line."""
    page: str = ""
    """The page of help of a command that was named without any argument."""


def describe_usage_error(error: Any) -> UsageMistake:
    """What a UsageError of typer's click means."""
    context = error.ctx
    path = context.command_path if context else _NAME
    commands = getattr(context.command, "commands", {}) if context else {}
    if type(error).__name__ == "NoArgsIsHelpError":
        names = ", ".join(name for name in commands if name != WHOLE)
        hint = f"Name {'a target, or ' * (WHOLE in commands)}one of {names}."
        return UsageMistake(f"{path} was given no command.", hint, page=error.format_message())
    message = " ".join(error.format_message().split())
    for found, said in _PLAINLY.items():
        message = message.replace(found, said)
    hint = f"{path} --help lists its {'commands' if commands else 'arguments and options'}."
    if commands and "No such command" not in message:
        hint = f"Options come after a command. {hint}"
    return UsageMistake(message, hint, usage_of(context) if context else "")
