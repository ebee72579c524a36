"""Running the command that a command line names; one that does not parse is told how to be corrected."""

import sys
from collections.abc import Sequence
from typing import Any

from pytorch_to_triton_server.completion.command import ASK
from pytorch_to_triton_server.help_page import WHOLE, usage
from pytorch_to_triton_server.terminal import (
    INTERRUPTED,
    close_stdout,
    defect,
    interrupted,
    print_error,
)

NAME = "pytorch-to-triton"
USAGE = 2
_PLAINLY = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number.",
    "Input should be a valid number, unable to parse string as a number": "it must be a number.",
    "Got unexpected extra argument(s)": "There are more arguments than the command takes:",
}
"""What the parser says, and what a person would."""


def run_and_flush(given: Sequence[str]) -> int:
    """The exit status, 0 where a reader has left early."""
    try:
        status = complete() if list(given) == [ASK] else run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # of a page of help or a script: whoever reads it has seen enough
        sys.stdout = sys.__stdout__  # click has wrapped it
        close_stdout()
        return 0
    return status


def run(given: Sequence[str]) -> int:
    """Run the command that the arguments name. Returns the exit status."""
    import typer

    from pytorch_to_triton.errors import Refusal

    as_json = "--json" in given
    usage_error: Any = typer.BadParameter.__base__  # of whichever click typer uses
    try:
        ended = every_command()(list(given), prog_name=NAME, standalone_mode=False, obj=as_json)
    except usage_error as error:
        return refuse_usage(error, as_json=as_json)
    except Refusal as refusal:
        print_error(refusal.kind, refusal.message, refusal.hint, as_json=as_json)
        return refusal.exit_code
    except typer.Abort:
        return interrupted(as_json=as_json)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # click's answer to it
            raise end.__context__ from None
        raise
    except BrokenPipeError:
        raise
    except Exception as error:
        return defect(given[0], error, as_json=as_json)
    if ended == INTERRUPTED:  # what typer makes of Ctrl-C
        return interrupted(as_json=as_json)
    return ended if isinstance(ended, int) else 0


def complete() -> int:
    """Print what may follow on the command line that a shell's script has put into _TYPER_COMPLETE_ARGS."""
    from typer._completion_classes import FishComplete

    shell = FishComplete(every_command(), {}, NAME, "")
    for item in shell.get_completions(*shell.get_completion_args()):
        print(f"{item.value}\t{' '.join((item.help or '').split())}")
    return 0


def every_command() -> Any:
    """The commands as click has them."""
    import typer.main

    from pytorch_to_triton_server.commands import build_app

    return typer.main.get_command(build_app())


def what_was_wrong(error: Any) -> str:
    """What a UsageError says, in a person's words."""
    if type(error).__name__ == "NoSuchOption":
        from pytorch_to_triton_server.tool import meant

        options = [name for option in error.ctx.command.params for name in option.opts]
        known = [name.removeprefix("--") for name in options if name.startswith("--")]
        return f"{error.message}{meant(error.option_name.lstrip('-'), known, '--')}"
    message = " ".join(error.format_message().split())
    if message.startswith("No such command"):
        return message + meant_command(message.split("'")[1])
    for parser_says, said in _PLAINLY.items():
        message = message.replace(parser_says, said)
    return message


def takes(context: Any, option: str) -> bool:
    """Whether the context's command has the option."""
    return any(parameter.name == option for parameter in context.command.params)


def meant_command(name: str) -> str:
    """The end of a sentence on a command that there is not: MCP's tools have underscores in their names."""
    from pytorch_to_triton_server.catalogue import TOOLS

    tools = [tool.name for tool in TOOLS]
    return f" Did you mean {name.replace('_', ' ')}?" if "_" in name and name in tools else ""


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
        message = what_was_wrong(error)
        hint = f"{path} --help lists its {'commands' if commands else 'arguments and options'}."
        if commands and "No such command" not in message:
            hint = f"Options come after a command. {hint}"
        if "There are more arguments" in message and context and takes(context, "reference"):
            hint = f"Name what to compare with as --reference. {hint}"
    print_error("usage", message, hint, as_json=as_json)
    if context and not as_json:
        print(f"Usage: {usage(context)}", file=sys.stderr)
    return USAGE
