"""Long lines of a drafted file, broken as a person would break them."""

import ast
from collections.abc import Sequence, Set

INDENT = "    "
WIDTH = 96
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
    """A statement as it is where it fits, else each argument of its call, or each term, on its own line."""
    text = line.lstrip()
    margin = line[: len(line) - len(text)]
    if len(line) <= WIDTH or text.endswith(":"):
        return (line,)
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr)
    call = _first_call(statement.value)
    if call:
        opened, closed = call.func.end_col_offset or 0, (call.end_col_offset or 0) - 1
        given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        inside = [f"{text[a.col_offset : a.end_col_offset]}," for a in given]
        head, tail = f"{text[:opened]}(", text[closed:]
    else:
        inside = _terms(text, statement.value)
        head, tail = f"{text[: statement.value.col_offset]}(", ")"
    return (margin + head, *(f"{margin}{INDENT}{part}" for part in inside), margin + tail)


def _first_call(value: ast.expr) -> ast.Call | None:
    """The first call of a chain such as `tl.load(...).to(...)`."""
    found = None
    while isinstance(value, ast.Call):
        found = value
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.func
    return found


def _terms(text: str, value: ast.expr) -> list[str]:
    """The expression before each of its outermost operators while it is too long for one line."""
    start, end = value.col_offset, value.end_col_offset
    if isinstance(value, ast.BinOp) and len(text[start:end]) > WIDTH // 2 and value.left.col_offset == start:
        return [*_terms(text, value.left), text[value.left.end_col_offset : end].strip()]
    return [text[start:end]]


def statements(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Lines of source as statements, each with the comments above it."""
    found, first = [], 0
    for node in ast.parse("\n".join(lines)).body:
        last = node.end_lineno or node.lineno
        found.append(tuple(lines[first:last]))
        first = last
    return found


def without_repeats(given: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The statements without those that set a name to what it is already, such as `n_rows = B * T`."""
    known: dict[str, tuple[str, ...]] = {}
    used: dict[str, Set[str]] = {}
    kept = []
    for statement in given:
        tree = ast.parse("\n".join(statement))
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
        written = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        setting = _set_name(tree)
        if setting and known.get(setting) == statement:
            continue
        for name in [n for n in known if n in written or used[n] & written]:
            del known[name]
        if setting:
            known[setting], used[setting] = statement, {n.id for n in names} - {setting}
        kept.append(statement)
    return kept


def _set_name(tree: ast.Module) -> str | None:
    """The name that a statement sets to what it would be again."""
    match tree.body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if not _makes_something(value):
            return name
    return None


def _makes_something(value: ast.expr) -> bool:
    """Whether each evaluation gives a tensor of its own."""
    return any(isinstance(n, ast.Name) and n.id == "torch" for n in ast.walk(value))
