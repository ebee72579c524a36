"""The checks of `doctor` about assistants and editors: is this server entered in their configurations?"""

import shutil
from collections.abc import Iterator

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.diagnosis import CheckResult, CheckState
from pytorch_to_triton_server.install.change import plan_change
from pytorch_to_triton_server.install.clients import CLIENTS, ClientName, McpClient
from pytorch_to_triton_server.install.command import server_command

GROUP = "assistants"


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
            seen=f"There is no configuration of {titles}.",
            fix="pytorch-to-triton install --client NAME enters the server into one.",
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
