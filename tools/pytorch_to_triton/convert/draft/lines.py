"""Long lines of a drafted file, broken as a person would break them."""

import ast
from collections.abc import Sequence

INDENT = "    "
WIDTH = 100
"""Longest line, but for the indentation of launches in `run`."""


def listed(items: Sequence[str]) -> tuple[str, ...]:
    """The items with commas behind them, each indented line filled before the next begins."""
    lines = [INDENT]
    for item in items:
        if len(lines[-1]) + len(item) >= WIDTH and lines[-1] != INDENT:
            lines.append(INDENT)
        lines[-1] += f"{item}, "
    return tuple(line.rstrip() for line in lines)


def wrapped(line: str) -> tuple[str, ...]:
    """A statement as it is where it fits, else its value, or each argument of its call, on a line of its own."""
    text = line.lstrip()
    margin = line[: len(line) - len(text)]
    if len(line) <= WIDTH or text.endswith(":"):
        return (line,)
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr)
    value = statement.value
    before = text[: value.col_offset]
    if isinstance(value, ast.Call):
        given = [ast.get_source_segment(text, a) or "" for a in (*value.args, *value.keywords)]
        head, inside = before + (ast.get_source_segment(text, value.func) or ""), [f"{g}," for g in given]
    else:
        head, inside = before, [text[value.col_offset :]]
    return (f"{margin}{head}(", *(f"{margin}{INDENT}{part}" for part in inside), f"{margin})")
