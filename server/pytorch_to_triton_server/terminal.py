"""What every command says in the same way: what went wrong, and that it was interrupted."""

import sys

TYPE_CHECKING = False  # typing itself takes a while to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytorch_to_triton.schema.value import Value

DEFECT = 5
INTERRUPTED = 130


def interrupted(*, as_json: bool) -> int:
    """Say so; the exit status of a command that Ctrl-C ended."""
    print_error("interrupted", "The command was interrupted.", "Run it again.", as_json=as_json)
    return INTERRUPTED


def print_error(kind: str, message: str, hint: str, *, as_json: bool) -> None:
    """On stderr for a person, and with --json on stdout for a program."""
    print(f"error: {message}\n{hint}", file=sys.stderr)
    if as_json:
        import json

        error = {"error": {"kind": kind, "message": message, "hint": hint}}
        print(json.dumps(error, indent=2), flush=True)


def print_result(result: "Value", show: "Callable[[Any], None]", *, as_json: bool) -> None:
    """For a program, or as `show` prints it for a person."""
    try:
        if as_json:
            print(result.model_dump_json(indent=2), flush=True)
        else:
            show(result)
    except BrokenPipeError:  # whoever reads it has seen enough; the answer is what it is
        close_stdout()


def defect(command: str, error: Exception, *, as_json: bool) -> int:
    """Say that this project has one, with the traceback on stderr; the exit status."""
    import traceback

    traceback.print_exception(error)
    message = f"{command} failed: {type(error).__name__}: {error}"
    hint = "This is a defect in pytorch-to-triton; please report it with the traceback on stderr."
    print_error("defect", message, hint, as_json=as_json)
    return DEFECT


def close_stdout() -> None:
    """Nobody reads it any more: what is still to be written, at the end of Python too, goes nowhere."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
