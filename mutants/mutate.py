"""The mutants of a kernel file: its text with one mistake, each with an id that other lines do not change."""

from __future__ import annotations

import ast
import hashlib
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mutants.code import Code, Edit, Function, functions_of, is_kernel
from mutants.operators import OPERATORS
from mutants.operators.operator import Operator, Site

NO_EDIT = Edit(0, 0, "")
TRIPWIRE = 'assert False, "this line is run"'
"""Triton's compiler takes it too."""


@dataclass(frozen=True)
class Mutant:
    """A kernel file with one mistake."""

    base: str
    function: str
    operator: str
    line: int
    """Where the mistake starts, from 1."""
    before: str
    """The lines that are touched, as one line."""
    after: str
    occurrence: int
    """Counts mistakes that are alike in all of the above."""
    text: str
    """The whole file."""

    @property
    def id(self) -> str:
        """`base/function/operator/line`, for people."""
        return f"{self.place}/{self.line}"

    @property
    def place(self) -> str:
        return f"{self.base}/{self.function}/{self.operator}"

    @property
    def key(self) -> str:
        """What stays the same when other lines change: the place and the difference."""
        again = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.place}{again}: {self.before} => {self.after}"

    @property
    def digest(self) -> str:
        return digest_of(self.text)


def selected(
    mutants: Iterable[Mutant], operators: Sequence[str], most: int, sample: int | None
) -> list[Mutant]:
    """Those of the operators, `most` in each function (0: all); of them a sample of all operators alike.

    They are drawn by the digests of their keys, so that other mutants do not change which are chosen.
    """
    drawn = sorted(mutants, key=lambda m: digest_of(m.key))
    turns: Counter[str] = Counter()
    of_operator: Counter[str] = Counter()
    chosen: list[tuple[int, Mutant]] = []
    for mutant in drawn:
        turns[mutant.place] += 1
        if is_chosen(mutant.operator, operators) and (turns[mutant.place] <= most or not most):
            of_operator[mutant.operator] += 1
            chosen.append((of_operator[mutant.operator], mutant))
    by_turn = sorted(chosen, key=lambda pair: pair[0])[:sample]
    return sorted((mutant for _, mutant in by_turn), key=lambda m: m.id)


def is_chosen(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def mutants_of(base: str, text: str) -> list[Mutant]:
    """All mutants of a kernel file, function by function; no two mean the same to Python."""
    code = Code.of(text)
    return [
        mutant for function in functions_of(code.tree) for mutant in mutants_in(base, Site(code, function))
    ]


def mutants_in(base: str, site: Site) -> Iterator[Mutant]:
    """The mutants of one function, by place."""
    code, name = site.code, site.function.name
    known = {meaning(code, site.function, NO_EDIT), None}
    alike: Counter[tuple[str, str, str]] = Counter()
    for operator, edit in edits_of(site, OPERATORS):
        means = meaning(code, site.function, edit)
        if means not in known:
            known.add(means)
            before, after = difference(code, edit)
            alike[operator.name, before, after] += 1
            occurrence = alike[operator.name, before, after]
            line, text = code.line_of(edit.start), code.edited(edit)
            yield Mutant(base, name, operator.name, line, before, after, occurrence, text)


def edits_of(site: Site, operators: Sequence[Operator]) -> Iterator[tuple[Operator, Edit]]:
    """What the operators make of a function's body, by place."""
    kernel = is_kernel(site.function)
    nodes = [node for statement in site.function.body for node in ast.walk(statement)]
    for node in sorted(nodes, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
        for operator in operators:
            if operator.in_kernels == kernel and isinstance(node, operator.node):
                for edit in operator.make(node, site):
                    yield operator, edit


def meaning(code: Code, function: Function, edit: Edit) -> str | None:
    """What the edited function means to Python; None where that is no Python."""
    edited = code.edited(edit)
    end = code.end(function) + len(edited) - len(code.text)
    indented = " " * function.col_offset + edited[code.start(function) : end]
    try:
        return ast.dump(ast.parse(textwrap.dedent(indented)))
    except SyntaxError:
        return None


def difference(code: Code, edit: Edit) -> tuple[str, str]:
    """The lines that an edit touches, without and with it, each as one line."""
    start = code.text.rfind("\n", 0, edit.start) + 1
    end = code.text.find("\n", edit.end)
    before = code.text[start:end]
    after = before[: edit.start - start] + edit.text + before[edit.end - start :]
    return " ".join(before.split()), " ".join(after.split())


def with_tripwire(text: str, line: int) -> str:
    """The file with a tripwire before the statement in this line: it fails where that is run."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    # An elif takes no statement before it, what surrounds it does.
    for node in sorted(statements, key=lambda n: n.lineno, reverse=True):
        before = node.lineno - 1
        wired = "".join([*lines[:before], " " * node.col_offset + f"{TRIPWIRE}\n", *lines[before:]])
        try:
            ast.parse(wired)
        except SyntaxError:
            continue
        return wired
    raise ValueError(f"no statement in line {line}")
