"""What a server offers, and to which folders it keeps."""

from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.names import path_of
from pytorch_to_triton_server.tool import Tool

PATIENCE_SECONDS = 45.0
"""How long one request waits: clients give up after 60 s."""


@dataclass(frozen=True)
class ServerSettings:
    """How `serve` was called."""

    allowed: tuple[Path, ...] = ()
    """Folders that calls may name; empty: those that the client names, else the current one."""
    tools: tuple[Tool, ...] = TOOLS
    python: str | None = None
    """Runs kernels, and is asked which Triton is installed, unless a call names another; None: this one."""
    images: bool = True
    """Whether charts come with results as images."""
    patience: float = PATIENCE_SECONDS
    """Seconds that one request waits."""


def chosen_tools(toolsets: str | None, *, read_only: bool) -> tuple[Tool, ...]:
    """The tools of these sets, named with commas between them; None: of all.

    Raises BadInput for a set that does not exist.
    """
    known = dict.fromkeys(tool.toolset for tool in TOOLS)
    named = [name.strip() for name in toolsets.split(",")] if toolsets is not None else list(known)
    for name in named:
        if name not in known:
            raise BadInput(f"There is no toolset {name!r}.", f"The toolsets are {', '.join(known)}.")
    return tuple(tool for tool in TOOLS if tool.toolset in named and (tool.read_only or not read_only))


def allowed_folders(texts: list[str]) -> tuple[Path, ...]:
    """The folders of --allow-dir. Raises BadInput for what is none."""
    folders = tuple(map(path_of, texts))
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder.", "Name an existing folder with --allow-dir.")
    return folders
