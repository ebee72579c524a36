"""Lines of a drafted file as a person would write and break them, and how run chooses by dtypes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from itertools import takewhile

from pytorch_to_triton.draft.emit.tidy import broken
from pytorch_to_triton.graph.dtype_rules import FINFO, DtypeRule
from pytorch_to_triton.schema.graph import DtypeChoice

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
    """A statement as it is where it fits, else on several lines; of a chain of calls the first."""
    if len(line) <= WIDTH:
        return (line,)
    (statement,) = ast.parse(line).body
    assert isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr)
    value = statement.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if not isinstance(value.func.value, ast.Call):
            break
        value = value.func.value
    *lines, last = broken("", line[: value.col_offset], value)
    return (*lines, last + line[value.end_col_offset :])


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


def tuple_text(items: Sequence[str]) -> str:
    """A tuple as source."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


Lines = tuple[str, ...]
"""One statement of `run`."""


def choice_source(choice: DtypeChoice) -> str:
    """The number as source: by torch.finfo where that is meant, else out of a table."""
    dtype = str(DtypeRule(choice.tensors))
    for name, known in FINFO.items():
        if all(known.get(d) == value for d, value in choice.values.items()):
            return f"torch.finfo({dtype}).{name}"
    entries = ", ".join(f"torch.{d}: {value!r}" for d, value in choice.values.items())
    return f"{{{entries}}}[{dtype}]"


def shared_at_the_start(parts: Sequence[Sequence[Lines]]) -> int:
    """How many statements all parts begin with."""
    return sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(*parts, strict=False)))


def decided(conditions: Sequence[str], parts: Sequence[Sequence[Lines]]) -> list[str]:
    """The first part whose condition holds, else the last; what all begin or end with stands outside."""
    before = shared_at_the_start(parts)
    after = shared_at_the_start([part[before:][::-1] for part in parts])
    inside = [[line for lines in part[before : len(part) - after] for line in lines] for part in parts]
    text = [line for lines in parts[-1][:before] for line in lines]
    if not any(inside):
        return text
    for number, (condition, lines) in enumerate(zip(conditions, inside, strict=False)):
        text.append(f"{'elif' if after and number else 'if'} {condition}:")
        text += [f"    {line}" for line in lines or ["pass"]]
    text += ["else:", *(f"    {line}" for line in inside[-1])] if after and inside[-1] else inside[-1]
    return text + [line for lines in parts[-1][len(parts[-1]) - after :] for line in lines]


def in_names(text: str, sources: Mapping[str, str]) -> str:
    """Python over the sizes with what `run` has computed already by its name."""
    for name, source in sorted(sources.items(), key=lambda item: -len(item[1])):
        text = text.replace(source, name) if not source.isidentifier() else text
    return text


def as_written(text: str, known: Mapping[str, str]) -> str:
    """A size as a person writes it: by the names of others, and how many blocks hold a number by `cdiv`."""
    others = {name: source for name, source in known.items() if len(source) < len(text)}
    return ast.unparse(_Blocks().visit(ast.parse(in_names(text, others), mode="eval")))


class _Blocks(ast.NodeTransformer):
    """`(n + 63) // 64`, and `(n - 1) // block + 1`, as `cdiv`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.BinOp(
                ast.BinOp(n, ast.Add(), ast.Constant(int(above))), ast.FloorDiv(), ast.Constant(int(block))
            ) if above == block - 1:
                return _cdiv(n, ast.Constant(block))
            case ast.BinOp(
                ast.BinOp(ast.BinOp(n, ast.Sub(), ast.Constant(1)), ast.FloorDiv(), block),
                ast.Add(),
                ast.Constant(1),
            ):
                return _cdiv(n, block)
        return node


def _cdiv(n: ast.expr, block: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("cdiv"), [n, block], [])
