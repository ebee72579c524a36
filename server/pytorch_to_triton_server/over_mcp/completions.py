"""Completions: the values that an argument of a prompt or a resource template may have."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from anyio import to_thread
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import CompleteRequestParams, CompleteResult, Completion, PromptReference

from pytorch_to_triton_server.completion.values import data_sheets, defined_in, pages, rules
from pytorch_to_triton_server.names import Boundary
from pytorch_to_triton_server.over_mcp.resources import kernel_files, session_names
from pytorch_to_triton_server.over_mcp.roots import boundary_of
from pytorch_to_triton_server.settings import ServerSettings

MOST = 100
"""What the protocol allows in one answer."""
MOST_FILES = 500
MOST_ENTRIES = 20_000
"""Of all folders that are searched for files: a client may ask at each key."""
MOST_BYTES = 1_000_000
"""Of all files that are read for the names in them."""
MOST_BYTES_OF_A_FILE = 200_000


@dataclass(frozen=True)
class Asked:
    """What a client wants completed."""

    begun: str
    boundary: Boundary


def add_completions(server: MCPServer[Any], settings: ServerSettings) -> None:
    """Offer them for all prompts and templates."""

    async def complete(request: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
        ref, name = params.ref, params.argument.name
        owner = ref.name if isinstance(ref, PromptReference) else ref.uri.partition("://")[0] + "://"
        values = VALUES.get((owner, name))
        if values is None:
            return CompleteResult(completion=Completion(values=[]))
        ctx = Context[Any, Any](request_context=request, mcp_server=server)
        asked = Asked(params.argument.value, await boundary_of(ctx, settings))
        return CompleteResult(completion=await to_thread.run_sync(completion_of, values, asked))

    # The SDK's own decorator leaves out the request, through which the client is asked for its folders.
    server._lowlevel_server.add_request_handler("completion/complete", CompleteRequestParams, complete)


def completion_of(values: "Values", asked: Asked) -> Completion:
    """What starts with what was typed, then what holds it."""
    fitting = [value for value in values(asked) if asked.begun in value]
    fitting.sort(key=lambda value: not value.startswith(asked.begun))
    return Completion(values=fitting[:MOST], total=len(fitting), has_more=len(fitting) > MOST)


def targets(asked: Asked) -> Iterator[str]:
    """Functions and classes in the Python files, as path.py:name; of many, those of the first files."""
    left = MOST_BYTES
    for file in map(Path, matching_files(asked.boundary, asked.begun.rpartition(":")[0])):
        with suppress(FileNotFoundError):
            size = file.stat().st_size
            left -= size if size <= MOST_BYTES_OF_A_FILE else 0
            if left < 0:
                return
            if size <= MOST_BYTES_OF_A_FILE:
                yield from (f"{file}:{name}" for name in defined_in(file))


def files(asked: Asked) -> Iterator[str]:
    """The Python files whose path holds what was typed."""
    return matching_files(asked.boundary, asked.begun)


def matching_files(boundary: Boundary, part: str) -> Iterator[str]:
    """The first Python files with this part in their path, below the current folder if calls may name it."""
    starts = [Path()] if boundary.holds(Path()) else boundary.roots
    files = (file for start in starts for file in python_files(start) if part in file)
    return islice(files, MOST_FILES)


def python_files(start: Path, most: int = MOST_ENTRIES) -> Iterator[str]:
    """The Python files below a folder, near ones first, except in hidden folders and virtual environments.

    Ends after `most` entries of folders. Links are not followed: they may lead out of the folder.
    """
    waiting = deque([os.fspath(start)])
    while waiting and most > 0:
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(waiting.popleft()) as scanned:
            entries = sorted(islice(scanned, most), key=lambda entry: entry.name)
        most -= len(entries)
        waiting += [entry.path for entry in entries if is_of_the_user(entry)]
        files = (entry for entry in entries if entry.name.endswith(".py"))
        yield from (os.path.normpath(file.path) for file in files if file.is_file(follow_symlinks=False))


def is_of_the_user(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, and neither hidden, nor Python's own, nor a virtual environment."""
    if entry.name.startswith((".", "__")) or not entry.is_dir(follow_symlinks=False):
        return False
    return not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


Values = Callable[[Asked], Iterable[str]]
VALUES: dict[tuple[str, str], Values] = {
    ("convert", "target"): targets,
    ("audit", "path"): files,
    ("audit", "focus"): lambda asked: ("correctness", "performance", "memory", "stability", "practices"),
    ("tune", "kernel"): files,
    ("tune", "gpu"): lambda asked: data_sheets(asked.begun),
    ("debug", "kernel"): files,
    ("docs://", "page"): lambda asked: pages(asked.begun),
    ("rule://", "name"): lambda asked: rules(asked.begun),
    ("kernel://", "name"): lambda asked: [file.stem for file in kernel_files()],
    ("session://", "name"): lambda asked: session_names(asked.boundary),
}
"""By the prompt, or the scheme of the template, and its argument."""
