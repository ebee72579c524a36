"""Names for traced values, taken from the variables of the caller's own source."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in')


class SourceNames:
    """Finds the source statement that made a node, and the variables which that statement assigns."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.lines = importlib.util.decode_source(file.read_bytes()).splitlines()
        self.statements = list(statements(file))

    def line(self, stack_trace: str | None) -> int | None:
        """The innermost line of the caller's file in a recorded stack."""
        lines = [int(m["line"]) for m in FRAME.finditer(stack_trace or "") if m["file"] == self.file]
        return lines[-1] if lines else None

    def text(self, line: int) -> str:
        """A line of the file as it stands."""
        return self.lines[line - 1].strip()

    def assigned(self, line: int | None) -> tuple[str, ...]:
        """The names that the statement at `line` assigns, in order."""
        holding = [s for s in self.statements if line is not None and s[0] <= line <= s[1]]
        return min(holding, key=lambda s: s[1] - s[0])[2] if holding else ()


def name_nodes(nodes: list[dict[str, Any]], names: SourceNames) -> None:
    """Set each node's `source_name`: the last node of a statement takes the name, items of a tuple theirs."""
    last = {node["line"]: node for node in nodes if node["op"] != "getitem"}
    for node in nodes:
        assigned = names.assigned(node["line"])
        node["source_name"] = None
        if node["op"] == "getitem" and len(assigned) > 1:
            index = node["args"][1]["value"]
            node["source_name"] = assigned[index] if index < len(assigned) else None
        elif len(assigned) == 1 and (node["op"] == "getitem" or last[node["line"]] is node):
            node["source_name"] = assigned[0]


def statements(file: Path) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """First line, last line and assigned names of every simple statement in the file."""
    for node in ast.walk(ast.parse(importlib.util.decode_source(file.read_bytes()))):
        match node:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                yield node.lineno, node.end_lineno or node.lineno, plain_names(target)
            case ast.Return() | ast.Assign() | ast.Expr():
                yield node.lineno, node.end_lineno or node.lineno, ()


def plain_names(target: ast.expr) -> tuple[str, ...]:
    """`a` or `a, b` as names; anything else assigns no plain name."""
    items = target.elts if isinstance(target, ast.Tuple) else [target]
    names = tuple(i.id for i in items if isinstance(i, ast.Name))
    return names if len(names) == len(items) else ()
