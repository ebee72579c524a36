"""Each client's own configuration: which file, and where in it a server is entered."""

import os
import sys
from collections.abc import Callable, Mapping
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
    user_file: Callable[[], Path]
    section: str
    """The key, at the top of the file, whose value holds the servers."""
    project_file: str | None = None
    """Relative to the project's folder; None if there is no such file."""
    form: Literal["json", "toml"] = "json"
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What an entry has besides `command` and `args`."""
    restart: str = "Restart {title}, so that it starts the server."

    def file(self, scope: Scope) -> Path | None:
        """The file of a scope; None if the client has none."""
        if scope == "user":
            return self.user_file()
        return Path.cwd() / self.project_file if self.project_file else None

    def next_step(self, *, removed: bool) -> str:
        """What is left to do once the entry is there, or is gone."""
        if removed:
            return f"{self.title} lets go of the server when it is started anew, if not before."
        return self.restart.format(title=self.title)

    def entry(self, command: list[str]) -> dict[str, Any]:
        """The entry that starts a command."""
        return {**self.extra, "command": command[0], "args": command[1:]}


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _below(variable: str, *default: str, file: str) -> Callable[[], Path]:
    """A file in the folder that a variable names, else in one below the home folder."""

    def path() -> Path:
        named = os.environ.get(variable)
        return (Path(named).expanduser() if named else Path.home().joinpath(*default)) / file

    return path


def _vscode() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
    return _below("XDG_CONFIG_HOME", ".config", file="Code/User/mcp.json")()


_STDIO = {"type": "stdio"}
CLIENTS: Mapping[ClientName, McpClient] = {
    "claude": McpClient(
        "Claude Code",
        _below("CLAUDE_CONFIG_DIR", file=".claude.json"),
        "mcpServers",
        ".mcp.json",
        extra=_STDIO,
        restart="Start a new session; /mcp shows the server.",
    ),
    "cursor": McpClient(
        "Cursor", _home(".cursor", "mcp.json"), "mcpServers", ".cursor/mcp.json", extra=_STDIO
    ),
    "vscode": McpClient(
        "VS Code",
        _vscode,
        "servers",
        ".vscode/mcp.json",
        extra=_STDIO,
        restart='Run "MCP: List Servers" in its command palette to start the server.',
    ),
    "zed": McpClient(
        "Zed",
        _below("XDG_CONFIG_HOME", ".config", file="zed/settings.json"),
        "context_servers",
        ".zed/settings.json",
        extra={"source": "custom"},
        restart="Zed starts the server when it sees the change.",
    ),
    "codex": McpClient(
        "Codex",
        _below("CODEX_HOME", ".codex", file="config.toml"),
        "mcp_servers",
        ".codex/config.toml",
        form="toml",
        restart="Start a new session; /mcp shows the server.",
    ),
    "windsurf": McpClient("Windsurf", _home(".codeium", "windsurf", "mcp_config.json"), "mcpServers"),
    "gemini": McpClient(
        "Gemini CLI",
        _home(".gemini", "settings.json"),
        "mcpServers",
        ".gemini/settings.json",
        restart="Start a new session; /mcp shows the server.",
    ),
}
