"""A command line that does not parse, said so that its author can correct it."""

import sys
from typing import Any

from pytorch_to_triton_server.command_classes import WHOLE
from pytorch_to_triton_server.help_page import usage
from pytorch_to_triton_server.terminal import print_error

USAGE = 2
_PLAINLY = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number.",
    "Input should be a valid number, unable to parse string as a number": "it must be a number.",
    "Got unexpected extra argument(s)": "There are more arguments than the command takes:",
}
"""What the parser says, and what a person would."""


def refuse_usage(error: Any, *, as_json: bool) -> int:
    """Say what a UsageError of typer's click means, and how to correct the call. Returns the exit status."""
    context = error.ctx
    path = context.command_path if context else "pytorch-to-triton"
    commands = getattr(context.command, "commands", {}) if context else {}
    if type(error).__name__ == "NoArgsIsHelpError":
        if not as_json:
            print(error.format_message())
            return USAGE
        message = f"{path} was given no command."
        names = ", ".join(name for name in commands if name != WHOLE)
        hint = f"Name {'a target, or ' * (WHOLE in commands)}one of {names}."
    else:
        message = " ".join(error.format_message().split())
        for parser_says, said in _PLAINLY.items():
            message = message.replace(parser_says, said)
        hint = f"{path} --help lists its {'commands' if commands else 'arguments and options'}."
        if commands and "No such command" not in message:
            hint = f"Options come after a command. {hint}"
    print_error("usage", message, hint, as_json=as_json)
    if context and not as_json:
        print(f"Usage: {usage(context)}", file=sys.stderr)
    return USAGE
