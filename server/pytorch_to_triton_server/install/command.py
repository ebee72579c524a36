"""The command `install`: what it takes and what it prints."""

import json as _json
from typing import TYPE_CHECKING, Annotated

import typer

from pytorch_to_triton_server.help_page import AsJson
from pytorch_to_triton_server.install.clients import CLIENTS, SERVER, ClientName, Scope

if TYPE_CHECKING:
    from pytorch_to_triton_server.install.change import FileChange

SUMMARIES = {
    "added": "The server was added to {file}.",
    "updated": "The server's entry in {file} was updated.",
    "unchanged": "The server is already in {file}.",
    "removed": "The server's entry was removed from {file}.",
    "absent": "There is no entry for the server in {file}.",
}
OF_THIS_MACHINE = (
    "A project's file is usually committed, but this entry starts the program by its path on this machine. "
    "For others, replace it with a command that they have too."
)


def install(
    context: typer.Context,
    *,
    client: Annotated[ClientName, typer.Option(help="The assistant or editor.")],
    scope: Annotated[
        Scope, typer.Option(help="user: for all projects; project: for the project in the current folder.")
    ] = "user",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the change as a diff, and change nothing.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the entry again.")] = False,
    json: AsJson = False,
) -> None:
    """Add the MCP server to the configuration of an assistant or editor.

    Changes only the server's entry and keeps comments. Before the first change, the file is copied to one
    with the ending .before-pytorch-to-triton.
    """
    from pytorch_to_triton_server.install.change import plan_change

    change = plan_change(CLIENTS[client], scope, None if remove else server_command())
    if not dry_run:
        change.make()
    result = describe_change(client, change, scope, is_planned=dry_run)
    if json or bool(context.obj):
        print(_json.dumps(result, indent=2, ensure_ascii=False))
    else:
        show(result, change, is_planned=dry_run)


def server_command() -> list[str]:
    """What a client runs from any folder: this installation's program by its path, and `serve`."""
    import shutil

    from pytorch_to_triton.command_line import program

    first, *rest = program()
    return [shutil.which(first) or first, *rest, "serve"]


def describe_change(
    client: ClientName, change: "FileChange", scope: Scope, *, is_planned: bool
) -> dict[str, object]:
    """The result, for a program."""
    gone = change.action in ("removed", "absent")
    summary, next_step = SUMMARIES[change.action], CLIENTS[client].next_step(removed=gone)
    if change.action in ("unchanged", "absent"):
        next_step = "Nothing is left to do."
    elif is_planned:
        summary, next_step = summary.replace(" was ", " would be "), "Run it again without --dry-run."
    return {
        "summary": summary.format(file=change.file),
        "next_step": next_step,
        "client": client,
        "file": str(change.file),
        "action": change.action,
        "is_dry_run": is_planned,
        "entry": None if gone else {SERVER: CLIENTS[client].entry(server_command())},
        "backup": str(change.backup) if change.backup.is_file() else None,
        "diff": change.diff(),
        "note": OF_THIS_MACHINE if scope == "project" and not gone else None,
    }


def show(result: dict[str, object], change: "FileChange", *, is_planned: bool) -> None:
    """The result, for a person."""
    if is_planned and change.diff():
        print(change.diff())
    elif result["entry"] is not None:
        print(_json.dumps(result["entry"], indent=2, ensure_ascii=False))
    print(result["summary"])
    if result["backup"] is not None and not is_planned:
        print(f"The file as it was before: {result['backup']}")
    if result["note"] is not None:
        print(f"Note: {result['note']}")
    print(result["next_step"])
