"""Each client's own configuration: which file, and where in it a server is entered."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ClientName = Literal["claude", "cursor", "vscode", "zed", "codex", "windsurf", "gemini"]
Scope = Literal["user", "project"]
SERVER = "pytorch-to-triton"
"""The key of the entry, and the name that clients show."""


@dataclass(frozen=True)
class McpClient:
    """One assistant or editor that starts MCP servers."""

    title: str
    user_name: str
    """Its file for all projects, in its folder."""
    section: str
    """The key, at the top of the file, whose value holds the servers."""
    project_file: str | None = None
    """Relative to the project's folder; None if there is no such file."""
    folder: str = "~"
    variable: str = ""
    """The environment variable that names another folder."""
    form: Literal["json", "toml"] = "json"
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What an entry has besides `command` and `args`."""
    restart: str = "Restart {title}, so that it starts the server."

    def user_file(self) -> Path:
        """Its file for all projects."""
        return Path(os.environ.get(self.variable) or self.folder).expanduser() / self.user_name

    def file(self, scope: Scope) -> Path | None:
        """The file of a scope; None if the client has none."""
        if scope == "user":
            return self.user_file()
        return Path.cwd() / self.project_file if self.project_file else None

    def next_step(self, *, removed: bool) -> str:
        """What is left to do once the entry is there, or is gone."""
        if removed:
            return f"{self.title} stops using the server when it is restarted, if not before."
        return self.restart.format(title=self.title)

    def entry(self, command: list[str]) -> dict[str, Any]:
        """The entry that starts a command."""
        return {**self.extra, "command": command[0], "args": command[1:]}


_STDIO = {"type": "stdio"}
_NEW_SESSION = "Start a new session; /mcp shows the server."
_ON_MAC = sys.platform == "darwin"
CLIENTS: Mapping[ClientName, McpClient] = {
    "claude": McpClient(
        "Claude Code",
        ".claude.json",
        "mcpServers",
        ".mcp.json",
        variable="CLAUDE_CONFIG_DIR",
        extra=_STDIO,
        restart=_NEW_SESSION,
    ),
    "cursor": McpClient("Cursor", ".cursor/mcp.json", "mcpServers", ".cursor/mcp.json", extra=_STDIO),
    "vscode": McpClient(
        "VS Code",
        "Code/User/mcp.json",
        "servers",
        ".vscode/mcp.json",
        folder="~/Library/Application Support" if _ON_MAC else "~/.config",
        variable="" if _ON_MAC else "XDG_CONFIG_HOME",
        extra=_STDIO,
        restart='Run "MCP: List Servers" in its command palette to start the server.',
    ),
    "zed": McpClient(
        "Zed",
        "zed/settings.json",
        "context_servers",
        ".zed/settings.json",
        folder="~/.config",
        variable="XDG_CONFIG_HOME",
        extra={"source": "custom"},
        restart="Zed starts the server when it sees the change.",
    ),
    "codex": McpClient(
        "Codex",
        "config.toml",
        "mcp_servers",
        ".codex/config.toml",
        folder="~/.codex",
        variable="CODEX_HOME",
        form="toml",
        restart=_NEW_SESSION,
    ),
    "windsurf": McpClient("Windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    "gemini": McpClient(
        "Gemini CLI", ".gemini/settings.json", "mcpServers", ".gemini/settings.json", restart=_NEW_SESSION
    ),
}
