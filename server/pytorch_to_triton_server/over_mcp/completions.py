"""Completions: the values that an argument of a prompt or a resource template may have."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from anyio import to_thread
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import CompleteRequestParams, CompleteResult, Completion, PromptReference

from pytorch_to_triton_server.boundary import Boundary
from pytorch_to_triton_server.completion.values import defined_in
from pytorch_to_triton_server.over_mcp.resources import (
    guide_files,
    kernel_files,
    rule_names,
    session_names,
)
from pytorch_to_triton_server.over_mcp.roots import boundary_of
from pytorch_to_triton_server.settings import ServerSettings

MOST = 100
"""What the protocol allows in one answer."""
MOST_FILES = 500
MOST_ENTRIES = 20_000
"""Of all folders that are searched for files: a client may ask at each key."""
MOST_BYTES = 1_000_000
"""Of all files that are read for the names in them."""
_MOST_BYTES_OF_A_FILE = 200_000


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
    path, _, _ = asked.begun.rpartition(":")
    for file in found_files(asked.boundary, path):
        size = size_of(file)
        if size > _MOST_BYTES_OF_A_FILE:
            continue
        left -= size
        if left < 0:
            return
        yield from (f"{file}:{name}" for name in defined_in(Path(file)))


def files(asked: Asked) -> Iterator[str]:
    """The Python files whose path holds what was typed."""
    return found_files(asked.boundary, asked.begun)


def found_files(boundary: Boundary, part: str) -> Iterator[str]:
    """The first Python files with this part in their path, below the current folder if calls may name it."""
    starts = [Path()] if boundary.holds(Path()) else boundary.roots
    found = (file for start in starts for file in python_files(start) if part in file)
    return islice(found, MOST_FILES)


def python_files(start: Path, most: int = MOST_ENTRIES) -> Iterator[str]:
    """The Python files below a folder, near ones first, except in hidden folders and virtual environments.

    Ends after `most` entries of folders. Links are not followed: they may lead out of the folder.
    """
    waiting = deque([os.fspath(start)])
    while waiting and most > 0:
        entries = entries_of(waiting.popleft(), most)
        most -= len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if is_of_the_user(entry):
                    waiting.append(entry.path)
            elif entry.name.endswith(".py") and entry.is_file(follow_symlinks=False):
                yield os.path.normpath(entry.path)


def entries_of(folder: str, most: int) -> list[os.DirEntry[str]]:
    """What lies in a folder, in order; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, most), key=lambda entry: entry.name)
    except OSError:
        return []


def is_of_the_user(folder: os.DirEntry[str]) -> bool:
    """Whether a folder is neither hidden, nor Python's own, nor a virtual environment."""
    hidden = folder.name.startswith((".", "__"))
    return not hidden and not os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))


def size_of(file: str) -> int:
    """In bytes; 0 of a file that is gone."""
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def gpus(asked: Asked) -> tuple[str, ...]:
    """Names of GPUs whose data sheets are known."""
    from pytorch_to_triton.hardware.datasheets import NAMES

    return tuple(NAMES)


def pages(asked: Asked) -> list[str]:
    """Guides and rules, as docs_read names them."""
    return [*(f"guides/{file.stem}" for file in guide_files()), *(f"rules/{name}" for name in rule_names())]


Values = Callable[[Asked], Iterable[str]]
VALUES: dict[tuple[str, str], Values] = {
    ("convert", "target"): targets,
    ("audit", "path"): files,
    ("audit", "focus"): lambda asked: ("correctness", "performance", "memory", "stability", "practices"),
    ("tune", "kernel"): files,
    ("tune", "gpu"): gpus,
    ("debug", "kernel"): files,
    ("docs://", "page"): pages,
    ("rule://", "name"): lambda asked: rule_names(),
    ("kernel://", "name"): lambda asked: [file.stem for file in kernel_files()],
    ("session://", "name"): lambda asked: session_names(asked.boundary),
}
"""By the prompt, or the scheme of the template, and its argument."""
