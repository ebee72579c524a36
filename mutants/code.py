"""A kernel file's text with its syntax tree, and changes of the text by place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

Function = ast.FunctionDef
ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that keep their meaning wherever their text is put."""


@dataclass(frozen=True)
class Edit:
    """What stands from `start` to `end`, in characters of the file, becomes `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Code:
    """A file's text; its nodes' places are those of `tree`."""

    text: str
    tree: ast.Module = field(repr=False)

    @staticmethod
    def of(text: str) -> Code:
        return Code(text, ast.parse(text))

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, self._lines))]

    def _offset(self, line: int, column: int) -> int:
        """`column` counts bytes, as the syntax tree does."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def written(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The node's text."""
        return self.text[self.start(node) : self.end(node)]

    def atom(self, node: ast.expr) -> str:
        """The expression's text, in parentheses where another operator could tear it apart."""
        return self.written(node) if isinstance(node, ATOMS) else f"({self.written(node)})"

    def replaced(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        return Edit(self.start(node), self.end(node), text)

    def swapped(self, first: ast.expr, second: ast.expr) -> Edit:
        """Two expressions, the first before the second, in each other's place."""
        between = self.text[self.end(first) : self.start(second)]
        return Edit(self.start(first), self.end(second), self.written(second) + between + self.written(first))

    def between(self, first: ast.expr, second: ast.expr, before: str, after: str) -> Edit:
        """The text `before` that stands between two expressions becomes `after`."""
        start, end = self.end(first), self.start(second)
        return Edit(start, end, self.text[start:end].replace(before, after, 1))

    def without(self, call: ast.Call, *names: str) -> Edit | None:
        """The call without these keyword arguments; None where it lacks the first or they stand apart."""
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        places = [place for place, a in enumerate(arguments) if isinstance(a, ast.keyword) and a.arg in names]
        if not places or not any(k.arg == names[0] for k in call.keywords) or places[0] == 0:
            return None
        if places != list(range(places[0], places[-1] + 1)):
            return None
        return Edit(self.end(arguments[places[0] - 1]), self.end(arguments[places[-1]]), "")

    def edited(self, edit: Edit) -> str:
        return self.text[: edit.start] + edit.text + self.text[edit.end :]

    def line_of(self, place: int) -> int:
        """The line, from 1, of the character at `place`."""
        return self.text.count("\n", 0, place) + 1


def is_kernel(function: Function) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def functions_of(tree: ast.Module) -> Iterator[Function]:
    """The file's functions and methods but those that serve `reference` alone."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    by_name = {function.name: function for function in functions}
    waiting = [node for node in tree.body if not isinstance(node, Function)] + [by_name["run"]]
    used: set[str] = {"run"}
    while waiting:
        named = {n.id for n in ast.walk(waiting.pop()) if isinstance(n, ast.Name)} - used
        used |= named
        waiting += [by_name[name] for name in named & by_name.keys()]
    methods = {
        f.name for c in tree.body if isinstance(c, ast.ClassDef) for f in c.body if isinstance(f, Function)
    }
    return (
        function for function in functions if function.name in used | methods and function.name != "reference"
    )
