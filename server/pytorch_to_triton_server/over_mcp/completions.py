"""Completions: the values that an argument of a prompt or a resource template may have."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.types import Completion, CompletionArgument, PromptReference, ResourceTemplateReference

from pytorch_to_triton_server.over_mcp.resources import (
    guide_files,
    kernel_files,
    rule_names,
    session_names,
)

Reference = PromptReference | ResourceTemplateReference
MOST = 100
"""What the protocol allows in one answer."""
_MOST_FILES = 500
_MOST_BYTES = 200_000


def add_completions(server: MCPServer[Any]) -> None:
    """Offer them for all prompts and templates."""

    async def complete(ref: Reference, argument: CompletionArgument, context: object) -> Completion:
        scheme = f"{ref.uri.partition('://')[0]}." if isinstance(ref, ResourceTemplateReference) else ""
        return completion_of(f"{scheme}{argument.name}", argument.value)

    server.completion()(complete)  # type: ignore[no-untyped-call]


def completion_of(name: str, begun: str) -> Completion:
    """What starts with what was typed, then what holds it."""
    values = VALUES.get(name, list)()
    fitting = [value for value in values if value.startswith(begun)]
    fitting += [value for value in values if begun in value and not value.startswith(begun)]
    return Completion(values=fitting[:MOST], total=len(fitting), has_more=len(fitting) > MOST)


def targets() -> list[str]:
    """Functions and classes in the Python files below the current folder, as path.py:name."""
    return [f"{file}:{name}" for file in files() for name in names_in(Path(file))]


def files() -> list[str]:
    """The Python files below the current folder, except in hidden folders and virtual environments."""
    return list(_files())[:_MOST_FILES]


def _files() -> Iterator[str]:
    for place, folders, names in os.walk("."):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "__"))
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        yield from (os.path.normpath(os.path.join(place, n)) for n in sorted(names) if n.endswith(".py"))


def names_in(file: Path) -> list[str]:
    """Public functions and classes at the top of a file; none where it cannot be read."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            return []
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def gpus() -> list[str]:
    """Names of GPUs whose data sheets are known."""
    from pytorch_to_triton.hardware.datasheets import NAMES

    return list(NAMES)


def pages() -> list[str]:
    """Guides and rules, as docs_read names them."""
    return [*(f"guides/{file.stem}" for file in guide_files()), *(f"rules/{name}" for name in rule_names())]


VALUES: dict[str, Callable[[], list[str]]] = {
    "target": targets,
    "kernel": files,
    "path": files,
    "focus": lambda: ["correctness", "performance", "memory", "stability", "practices"],
    "gpu": gpus,
    "docs.page": pages,
    "rule.name": rule_names,
    "kernel.name": lambda: [file.stem for file in kernel_files()],
    "session.name": session_names,
}
"""By the argument of a prompt; of a template after its scheme and a dot."""
