"""Which statements of a function become kernels: the longest ranges between those that need values."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytorch_to_triton.convert.cuts.function_text import (
    FunctionText,
    blocks_of,
    is_indexed_by,
    loaded,
    read_names,
    statements,
    stored,
)
from pytorch_to_triton.worker.wire.tracing import RunsItem, Visit

PLAIN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
"""Statements that are computed as they stand; those with blocks are traced through."""
LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Delete, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class StatementRange:
    """Statements of one block, one after the other, as a function of the variables that they read."""

    statements: tuple[ast.stmt, ...]
    reads: tuple[str, ...]
    """The variables that they take, in the order of their first use; the module is none."""
    gives: tuple[str, ...]
    """Those that are read later; none where it ends with the function's own `return`."""
    loop: ast.stmt | None
    """The outermost loop that repeats it."""

    @property
    def line(self) -> int:
        """Of the first statement, by which the range is known."""
        return self.statements[0].lineno


@dataclass(frozen=True)
class Ranges:
    """A function with what was seen of its runs."""

    function: FunctionText
    seen: RunsItem

    @cached_property
    def visits(self) -> Mapping[int, Sequence[Visit]]:
        """By statement."""
        found: defaultdict[int, list[Visit]] = defaultdict(list)
        for visit in self.seen.visits:
            found[visit.line].append(visit)
        return found

    @cached_property
    def all(self) -> tuple[StatementRange, ...]:
        """All of them, in the order of the text."""
        return tuple(self._in_block(self.function.tree.body, None))

    @cached_property
    def of_values(self) -> frozenset[str]:
        """Variables that follow from values and are no tensors: what is computed on the side of Python."""
        plain = [s for s in statements(self.function.tree) if isinstance(s, PLAIN)]
        found = {name for s in plain if self.needs(s) for name in stored(s)}
        silent = [s for s in plain if s.lineno not in self._operators]
        while more := {n for s in silent if loaded(s) & found for n in stored(s)} - found:
            found |= more
        return frozenset(found)

    @cached_property
    def changing(self) -> frozenset[str]:
        """Variables that hold constants, but another one from one time in a run to the next, or by values."""
        held: defaultdict[tuple[str, int], set[object]] = defaultdict(set)
        for visit in self.seen.visits:
            for name, value in visit.before.items():
                if value.kind == "constant":
                    held[name, visit.case].add(value.value)
        return self.of_values | {name for (name, _), values in held.items() if len(values) > 1}

    def shorter(self, each: StatementRange) -> Iterator[StatementRange]:
        """What may be computed of a range that cannot be as a whole: its halves, or the blocks of its only
        statement."""
        middle = len(each.statements) // 2
        if not middle:
            yield from self._in_blocks_of(each.statements[0], each.loop)
            return
        for half in (each.statements[:middle], each.statements[middle:]):
            yield from self._in_block(half, each.loop)

    def needs(self, statement: ast.stmt) -> bool:
        """Whether it needs values somewhere."""
        end = statement.end_lineno or statement.lineno
        return any(statement.lineno <= need.line <= end for need in self.seen.needs)

    def branches(self) -> tuple[int, ...]:
        """The tests that values may decide."""
        tests = [s for s in statements(self.function.tree) if isinstance(s, ast.If | ast.While)]
        return tuple(
            s.lineno
            for s in tests
            if not isinstance(s.test, ast.Constant)
            and (loaded(s.test) & self.of_values or any(n.line == s.test.lineno for n in self.seen.needs))
        )

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """Attributes that the function assigns: what they hold is not in a module that was just made."""
        attributes = (n for n in ast.walk(self.function.tree) if isinstance(n, ast.Attribute))
        return frozenset(n.attr for n in attributes if not isinstance(n.ctx, ast.Load))

    @cached_property
    def _operators(self) -> frozenset[int]:
        """The statements that call operators."""
        return frozenset(int(line) for line in self.seen.operators)

    def _in_block(self, block: Sequence[ast.stmt], loop: ast.stmt | None) -> Iterator[StatementRange]:
        """The ranges of a block and of the blocks inside; `loop` is the outermost that repeats it."""
        start = 0
        while start < len(block):
            found = self._longest(block, start, loop)
            if found:
                yield found
                start = block.index(found.statements[-1]) + 1
                continue
            yield from self._in_blocks_of(block[start], loop)
            start += 1

    def _in_blocks_of(self, statement: ast.stmt, loop: ast.stmt | None) -> Iterator[StatementRange]:
        repeated = loop or (statement if isinstance(statement, ast.For | ast.While) else None)
        for inner in blocks_of(statement):
            yield from self._in_block(inner, repeated)

    def _longest(self, block: Sequence[ast.stmt], start: int, loop: ast.stmt | None) -> StatementRange | None:
        end = start
        while end < len(block) and self._fits(block[end]):
            end += 1
        for last in range(end, start, -1):
            if (found := self._range(block[start:last], loop)) is not None:
                return found
        return None

    def _fits(self, statement: ast.stmt) -> bool:
        """Whether it may be computed by kernels at all."""
        if not self.visits[statement.lineno] or self.needs(statement):
            return False
        nodes = [*ast.walk(statement)]
        if any(is_indexed_by(node, self.changing) for node in nodes):
            return False
        if any(isinstance(node, ast.Attribute) and node.attr in self._assigned for node in nodes):
            return False
        if isinstance(statement, PLAIN):
            return not (isinstance(statement, ast.Return) and statement.value is None)
        left = any(isinstance(node, LEAVING) for node in nodes)
        return bool(blocks_of(statement)) and not left

    def _range(self, chosen: Sequence[ast.stmt], loop: ast.stmt | None) -> StatementRange | None:
        """These statements as a range; None where they take or give what no kernel does, or compute nothing
        at one of their ends."""
        if not (self._computes(chosen[0]) and self._computes(chosen[-1])):
            return None
        reads = self._read(chosen)
        if not all(self._is_taken(name, chosen[0]) for name in reads):
            return None
        gives = () if isinstance(chosen[-1], ast.Return) else self._given(chosen, reads, loop)
        after = [visit.after for visit in self.visits[chosen[-1].lineno] if visit.after]
        if not all(held[name].kind == "tensor" for held in after for name in gives if name in held):
            return None
        return StatementRange(tuple(chosen), reads, gives, loop)

    def _computes(self, statement: ast.stmt) -> bool:
        """Whether it calls operators."""
        return any(each.lineno in self._operators for each in (statement, *statements(statement)))

    def _read(self, chosen: Sequence[ast.stmt]) -> tuple[str, ...]:
        """The variables that statements take from before, or may leave as they are."""
        bound = {name for visit in self.visits[chosen[0].lineno] for name in visit.before}
        bound -= {self.function.receiver}
        made: set[str] = set()
        reads: dict[str, None] = {}
        for statement in chosen:
            kept = set() if isinstance(statement, PLAIN) else stored(statement)
            taken = (loaded(statement) | kept) - made
            in_order = [
                n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id in taken & bound
            ]
            reads |= dict.fromkeys(in_order)
            made |= stored(statement) if isinstance(statement, PLAIN) else set()
        return tuple(reads)

    def _is_taken(self, name: str, first: ast.stmt) -> bool:
        """Whether a kernel can take what a variable holds."""
        held = [visit.before[name] for visit in self.visits[first.lineno] if name in visit.before]
        kinds = {each.kind for each in held}
        if len(kinds) != 1 or "object" in kinds:
            return False
        texts = any(isinstance(each.value, bool | str | None) for each in held)
        return kinds != {"constant"} or name not in self.changing or not texts

    def _given(
        self, chosen: Sequence[ast.stmt], reads: Collection[str], loop: ast.stmt | None
    ) -> tuple[str, ...]:
        """What the statements bind that others read; in a loop also what they read themselves next time."""
        inside = {id(each) for s in chosen for each in ast.walk(s)}
        last = chosen[-1].end_lineno or chosen[-1].lineno
        first = loop.lineno if loop else last + 1
        end = (loop.end_lineno or 0) if loop else 0
        later = {
            name.id
            for name in read_names(self.function.tree)
            if id(name) not in inside and (name.lineno > last or first <= name.lineno <= end)
        }
        later |= set(reads) if loop else set()
        names = [n.id for s in chosen for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in stored(s)]
        return tuple(name for name in dict.fromkeys(names) if name in later)
