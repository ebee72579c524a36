"""A function as text in which each statement starts on a line of its own: that line is its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Lines = tuple[int, int]
"""The first and the last line of a statement in the user's file."""
BLOCKS = (ast.If, ast.While, ast.For, ast.With)
"""Statements whose blocks may be cut."""


@dataclass(frozen=True)
class FunctionText:
    """A function, as written by ast.unparse."""

    text: str
    tree: ast.FunctionDef
    """Of the text."""
    lines: Mapping[int, Lines]
    """Where each statement comes from, by its line in the text."""

    def names(self) -> frozenset[str]:
        """All names that it uses or binds."""
        nodes = list(ast.walk(self.tree))
        return frozenset(n.id for n in nodes if isinstance(n, ast.Name)) | frozenset(
            n.arg for n in nodes if isinstance(n, ast.arg)
        )


def function_text(source: str, name: str) -> FunctionText | None:
    """The function of a file; None where it is no plain one at the top level, or a generator."""
    found = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == name]
    if not found or any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Global) for n in ast.walk(found[-1])):
        return None
    function = found[-1]
    return rewritten(function, {s.lineno: (s.lineno, last_line(s)) for s in statements(function)})


def last_line(statement: ast.stmt) -> int:
    """Of a statement with blocks, that of its head."""
    blocks = blocks_of(statement)
    heads = [e.end_lineno or 0 for e in ast.iter_child_nodes(statement) if isinstance(e, ast.expr)]
    return max(heads, default=statement.lineno) if blocks else statement.end_lineno or statement.lineno


def rewritten(function: ast.FunctionDef, lines: Mapping[int, Lines]) -> FunctionText:
    """A tree as text; its statements, also those that were added, have lines by which `lines` knows them."""
    text = ast.unparse(ast.fix_missing_locations(function))
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    pairs = zip(statements(tree), statements(function), strict=True)
    return FunctionText(text, tree, {new.lineno: lines[old.lineno] for new, old in pairs})


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from statements(child)


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement that may be cut."""
    blocks = [getattr(statement, "body", []), getattr(statement, "orelse", [])]
    return [block for block in blocks if block] if isinstance(statement, BLOCKS) else []


def read_names(node: ast.AST) -> list[ast.Name]:
    """The places below a node where a variable is read; `x += 1` reads x."""
    nodes = list(ast.walk(node))
    names = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    changed = (n.target for n in nodes if isinstance(n, ast.AugAssign))
    return [*names, *(target for target in changed if isinstance(target, ast.Name))]


def loaded(node: ast.AST) -> set[str]:
    """Names that are read below a node."""
    return {name.id for name in read_names(node)}


def is_indexed_by(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether an element or a slice is taken at one of these variables."""
    return isinstance(node, ast.Subscript) and bool(loaded(node.slice) & names)


def stored(node: ast.AST) -> set[str]:
    """Names that are bound below a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
