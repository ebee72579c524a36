"""The command that prints a shell's script for completion."""

import json as plain_json
from typing import Annotated, Literal

import typer

from pytorch_to_triton_server.completion.scripts import SCRIPTS


def completion(
    *,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell: bash, zsh or fish.")],
    json: Annotated[bool, typer.Option("--json", help="Print only the result, as JSON.")] = False,
) -> None:
    """Print the script that has a shell complete commands, options and their values.

    It completes targets from the files in the folder, with the functions in them, and GPUs, sessions, rules
    and pages. No file of yours is changed: where the script goes, the examples show.
    """
    script = SCRIPTS[shell]
    print(plain_json.dumps({"shell": shell, "script": script}, indent=2) if json else script, end="")
    if json:
        print()
