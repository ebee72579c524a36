"""Completions: the values that an argument of a prompt or a resource template may have."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
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


Values = Callable[[str, Boundary], Iterable[str]]
"""What may be meant, by what was typed, of what calls may name."""


def add_completions(server: MCPServer[Any], settings: ServerSettings) -> None:
    """Offer them for all prompts and templates."""

    async def complete(request: ServerRequestContext[Any], params: CompleteRequestParams) -> CompleteResult:
        ref, name = params.ref, params.argument.name
        owner = ref.name if isinstance(ref, PromptReference) else ref.uri.partition("://")[0] + "://"
        values = VALUES.get((owner, name))
        if values is None:
            return CompleteResult(completion=Completion(values=[]))
        ctx = Context[Any, Any](request_context=request, mcp_server=server)
        boundary, begun = await boundary_of(ctx, settings), params.argument.value
        return CompleteResult(completion=await to_thread.run_sync(completion_of, values, begun, boundary))

    # The SDK's own decorator leaves out the request, through which the client is asked for its folders.
    server._lowlevel_server.add_request_handler("completion/complete", CompleteRequestParams, complete)


def completion_of(values: Values, begun: str, boundary: Boundary) -> Completion:
    """What starts with what was typed, then what holds it."""
    fitting = [value for value in values(begun, boundary) if begun in value]
    fitting.sort(key=lambda value: not value.startswith(begun))
    return Completion(values=fitting[:MOST], total=len(fitting), has_more=len(fitting) > MOST)


def targets(begun: str, boundary: Boundary) -> Iterator[str]:
    """Functions and classes in the Python files, as path.py:name; of many, those of the first files."""
    left = MOST_BYTES
    for file in map(Path, files(begun.rpartition(":")[0], boundary)):
        with suppress(FileNotFoundError):
            size = file.stat().st_size
            left -= size if size <= MOST_BYTES_OF_A_FILE else 0
            if left < 0:
                return
            if size <= MOST_BYTES_OF_A_FILE:
                yield from (f"{file}:{name}" for name in defined_in(file))


def files(begun: str, boundary: Boundary) -> Iterator[str]:
    """The first Python files whose path holds what was typed, in the current folder if calls may name it."""
    starts = [Path()] if boundary.holds(Path()) else boundary.roots
    return islice((file for start in starts for file in python_files(start) if begun in file), MOST_FILES)


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


VALUES: dict[tuple[str, str], Values] = {
    ("convert", "target"): targets,
    ("audit", "path"): files,
    ("audit", "focus"): lambda *_: ("correctness", "performance", "memory", "stability", "practices"),
    ("tune", "kernel"): files,
    ("tune", "gpu"): lambda begun, _: data_sheets(begun),
    ("debug", "kernel"): files,
    ("docs://", "page"): lambda begun, _: pages(begun),
    ("rule://", "name"): lambda begun, _: rules(begun),
    ("kernel://", "name"): lambda *_: [file.stem for file in kernel_files()],
    ("session://", "name"): lambda _, boundary: session_names(boundary),
}
"""By the prompt, or the scheme of the template, and its argument."""
