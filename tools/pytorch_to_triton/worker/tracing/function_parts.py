"""Statements of a target's function as a target of their own."""

import ast
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ..loading.target import Loaded
from ..wire import tracing


def part_of(loaded: Loaded, part: tracing.PartSource) -> Loaded:
    """A part of the function as a function of the same file, its statements on their own lines."""
    tree = ast.parse(part.text)
    placed = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    for node, line in zip(placed, part.lines, strict=False):
        node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    found: dict[str, Callable[..., Any]] = {}
    exec(compile(tree, str(loaded.file), "exec"), vars(loaded.contents), found)
    function = found[part.name]
    return dataclasses.replace(
        loaded, kind="function", name=part.name, signature=inspect.signature(function), call=function
    )
