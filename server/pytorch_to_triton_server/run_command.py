"""Running the command that a command line names."""

import sys
from collections.abc import Sequence
from typing import Any

from pytorch_to_triton_server.completion.scripts import ASK
from pytorch_to_triton_server.terminal import (
    INTERRUPTED,
    close_stdout,
    defect,
    interrupted,
    print_error,
)

NAME = "pytorch-to-triton"


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
    from pytorch_to_triton_server.usage import refuse_usage

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
