"""The command `doctor`: what it takes, its checks of assistants and editors, and all checks as a table."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pytorch_to_triton.errors import BadInput, MissingRequirement
from pytorch_to_triton.schema.diagnosis import CheckResult, CheckState
from pytorch_to_triton_server.completion.values import completer
from pytorch_to_triton_server.help_page import AsJson
from pytorch_to_triton_server.install.change import plan_change
from pytorch_to_triton_server.install.clients import CLIENTS, ClientName, McpClient
from pytorch_to_triton_server.install.command import server_command
from pytorch_to_triton_server.progress import progress_on_stderr, run_interruptible
from pytorch_to_triton_server.pythons import python_of
from pytorch_to_triton_server.terminal import print_result

if TYPE_CHECKING:
    from pytorch_to_triton.schema.diagnosis import Diagnosis

GROUP = "assistants"


def doctor(
    *,
    python: Annotated[
        str | None,
        typer.Option(
            help="The Python whose torch and triton are checked; default: this one",
            autocompletion=completer("python"),
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check that everything needed is installed and works, and say how to fix what does not.

    Looks at the driver, GPUs, torch, Triton, the C compiler, caches and locks, and compiles and runs a small
    kernel. Changes nothing. Exits with status 3 if a check failed.
    """
    diagnosis = run_interruptible(run_diagnosis, python)
    print_result(diagnosis, show_diagnosis, as_json=json)
    raise typer.Exit(MissingRequirement.exit_code if diagnosis.verdict == "unhealthy" else 0)


async def run_diagnosis(python: str | None) -> "Diagnosis":
    """All checks, with progress on stderr; run folders lie apart, since the cache is checked too."""
    from pytorch_to_triton.doctor.doctor import diagnose
    from pytorch_to_triton.jobs.client import open_client
    from pytorch_to_triton.jobs.run_folder import RunFolders

    with tempfile.TemporaryDirectory(prefix="doctor-") as folder, progress_on_stderr("checking") as listener:
        async with open_client(RunFolders(Path(folder))) as worker:
            return await diagnose(worker, await python_of(python), listener, tuple(client_checks()))


def show_diagnosis(diagnosis: "Diagnosis") -> None:
    """What the checks say together; then each by group, a line each, with what to do below."""
    from pytorch_to_triton_server.tables import TerminalTable, console_on_stdout

    console = console_on_stdout()
    console.print(f"{diagnosis.summary}\n{diagnosis.next_step}\n")
    for group, checks in groupby(diagnosis.checks, lambda check: check.group):
        console.print(group, style="bold")
        rows = [(f" {check.state:8}", f"{check.name:17}", seen_and_fix(check)) for check in checks]
        console.print(TerminalTable(("", "", ""), rows))


def seen_and_fix(check: "CheckResult") -> str:
    """What was seen, and what to do about it where something is to be done."""
    is_due = check.fix and check.state in ("warning", "failed")
    return f"{check.seen}\n→ {check.fix}" if is_due else check.seen


def client_checks() -> Iterator[CheckResult]:
    """One check for each client that has a configuration here; nothing is written."""
    configured = [(name, client) for name, client in CLIENTS.items() if client.user_file().is_file()]
    for name, client in configured:
        yield check_client(name, client)
    if not configured:
        titles = ", ".join(client.title for client in CLIENTS.values())
        yield CheckResult(
            name="assistants",
            group=GROUP,
            state="not here",
            seen=f"There is no configuration for {titles}.",
            fix="pytorch-to-triton install --client NAME adds the server to one.",
        )


def check_client(name: ClientName, client: McpClient) -> CheckResult:
    """Whether the command that the client has for this server exists."""
    fix = f"Run pytorch-to-triton install --client {name}"

    def result(state: CheckState, seen: str, fix: str = "") -> CheckResult:
        return CheckResult(name=client.title, group=GROUP, state=state, seen=seen, fix=fix)

    try:
        change = plan_change(client, "user", server_command())
    except BadInput as refusal:
        return result("warning", refusal.message, refusal.hint)
    if change.action == "unchanged":
        return result("ok", f"{change.file} starts this installation.")
    if change.action == "added":
        return result("not here", f"{change.file} does not name this server.", fix)
    command = str(change.entry.get("command", "")) if isinstance(change.entry, dict) else ""
    if shutil.which(command) is None:
        return result("warning", f"{change.file} starts {command or 'nothing'}, which does not exist.", fix)
    return result("ok", f"{change.file} starts {command}.")
