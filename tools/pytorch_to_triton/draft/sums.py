"""Steps for a part of what an operator reduces: sums of each row first, and what reduces what it reduced.

Sums over many rows of what other results are computed of row by row: each row's sum first.

The gradient of a temperature adds up what the gradient of the scores has in each row. By itself it would
read all of that again; its rows' sums are one more result of the kernel that has the rows at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.groups import Group, group_of
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import repeated, rewrite
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Load,
    Map,
    Reduce,
    Value,
    axes_in_order,
    axes_of,
    op,
    walk,
)
from pytorch_to_triton.draft.program import (
    Call,
    Program,
    Step,
    buffers_of,
    inner_step,
    read_through,
    taken_apart,
)
from pytorch_to_triton.draft.schedule.axes import innermost, unified


def with_sums_by_row(program: Program) -> Program:
    """The same program, in which such a sum is a step for the rows and one for what they come to."""
    split = _Sums(program)
    items = tuple(new for i in program.items for new in (split.of(i) if isinstance(i, Step) else (i,)))
    return replace(program, items=items)


class _Sums:
    def __init__(self, program: Program) -> None:
        self.steps: Mapping[str, Step] = program.steps
        self.read: dict[str, set[str]] = {}
        """The names of all that reads a step; results are called after their paths."""
        for step in self.steps.values():
            self._note(step.name, buffers_of(step.tensor))
        for call in program.calls:
            for name in call.names:
                self._note(name, call.reads)
        for result in program.results:
            self._note(f"result {result.path}", buffers_of(result.tensor))
        self.taken = {*self.steps, *(i.name for i in program.graph.inputs)}

    def of(self, step: Step) -> Iterator[Step]:
        """The sum of each row, and the step that adds those up; where it is no such sum, the step itself."""
        summed = _sum_of(step)
        whole = self._at_once(summed) if summed else None
        row = self._row(step, whole) if whole else None
        if summed is None or whole is None or row is None:
            yield step
            return
        load, along = row
        across = tuple(a for a in whole.axes if a not in along)
        value = replace(whole, axes=tuple(along), name=None) if along else whole.args[0]
        dims = [a for i in load.index for a in axes_in_order(i)] + [*step.tensor.axes, *across]
        kept = tuple((a,) for a in dict.fromkeys(dims) if a not in along)
        name = fresh(f"{step.name}_rows", self.taken)
        self.taken.add(name)
        rows = replace(inner_step(step, name, kept, value), is_kept=True)
        total = replace(whole, args=(Load(rows.buffer, rows.tensor.indices, name=name),), axes=across)
        yield rows
        value = rewrite(step.tensor.value, lambda v: total if v == summed else None)
        yield replace(step, tensor=replace(step.tensor, value=value))

    def _note(self, reader: str, buffers: Iterable[str]) -> None:
        for name in buffers:
            self.read.setdefault(name, set()).add(reader)

    def _behind(self, name: str) -> set[str]:
        """All that is computed from it."""
        found: set[str] = set()
        todo = [name]
        while todo:
            fresh_ones = self.read.get(todo.pop(), set()) - found
            found |= fresh_ones
            todo += fresh_ones
        return found

    def _at_once(self, r: Reduce) -> Reduce:
        """A sum of sums that nothing else reads, each times what is the same for all of its terms, as one."""
        inner = _sum_in(rewrite(r.args[0], self._read_once))
        return replace(r, args=(inner.args[0],), axes=(*r.axes, *inner.axes)) if inner else r

    def _read_once(self, v: Value) -> Value | None:
        """What is computed there, where nothing else reads it."""
        if not isinstance(v, Load) or v.buffer.name not in self.steps or len(self.read[v.buffer.name]) > 1:
            return None
        step = self.steps[v.buffer.name]
        if step.anchors and step.anchors != [step.tensor.value]:
            return None
        return read_through(v, step, rewrite(step.tensor.value, self._read_once))

    def _row(self, step: Step, r: Reduce) -> tuple[Load, list[Axis]] | None:
        """What it adds up that is reduced along rows, and for something else too; and its axes of a row.

        Of several it is what has neighbours in its rows. None where its rows are all that is summed, or not.
        """
        found = []
        beyond = {step.name, *self._behind(step.name)}
        for load in self._reduced(r.args[0]):
            row = _row_dims(self.steps[load.buffer.name])
            along = {a for d in row for a in axes_of(load.index[d])}
            beside = {n for n in self._behind(load.buffer.name) - beyond if step.name not in self._behind(n)}
            if beside and row and along <= set(r.axes) and set(r.axes) - along:
                found.append((load, [a for a in r.axes if a in along]))
        if len(found) < 2:
            return found[0] if found else None
        lanes = {innermost(v) for v in self._inputs(r.args[0], set())}
        return next((f for f in found if lanes & set(f[1])), found[0])

    def _inputs(self, value: Value, seen: set[str]) -> Iterator[Load]:
        """The inputs that it is computed of, as they are read."""
        for load in [v for v in walk(value) if isinstance(v, Load)]:
            step = self.steps.get(load.buffer.name)
            if step is None:
                yield load
            elif step.name not in seen:
                seen.add(step.name)
                yield from self._inputs(read_through(load, step, step.tensor.value), seen)

    def _reduced(self, value: Value) -> Iterator[Load]:
        """The nearest steps that reduce, as they are read."""
        for load in [v for v in walk(value) if isinstance(v, Load) and v.buffer.name in self.steps]:
            step = self.steps[load.buffer.name]
            if step.anchors:
                yield load
            else:
                yield from self._reduced(read_through(load, step, step.tensor.value))


def _sum_of(step: Step) -> Reduce | None:
    """The sum that the step goes on with, where it reads nothing beside it."""
    beside = list(walk(step.tensor.value, into=lambda v: not isinstance(v, Reduce)))
    match step.anchors:
        case [Reduce(monoid=m) as summed] if m == SUM and not any(isinstance(v, Load) for v in beside):
            return summed
    return None


def _sum_in(v: Value) -> Reduce | None:
    """The value as one sum, where it is a sum times what does not vary along its axes."""
    match v:
        case Reduce(monoid=m) if m == SUM:
            return v
        case Map(fn="neg", args=(x,)) if inner := _sum_in(x):
            return replace(inner, args=(op("neg", inner.args[0]),))
        case Map(fn="mul", args=(x, y)):
            for factor, other in ((x, y), (y, x)):
                if (inner := _sum_in(factor)) and not axes_of(other) & set(inner.axes):
                    return replace(inner, args=(op("mul", inner.args[0], other),))
    return None


def _row_dims(step: Step) -> list[int]:
    """The dimensions along which the step reduces what it is computed of."""
    (store,) = unified(Cluster(step.name, (step.store,))).stores
    reduced = {a for v in walk(store.value) if isinstance(v, Reduce) for a in v.axes}
    return [d for d, i in enumerate(store.index) if axes_of(i) & reduced]


def with_nested_apart(program: Program) -> Program:
    """The same program, in which no step has to be computed again and again."""
    taken = set(program.steps) | {i.name for i in program.graph.inputs}
    items: list[Step | Call] = []
    for item in program.items:
        if isinstance(item, Step) and _repeats(item):
            items += taken_apart(item, item.tensor.value, repeated, taken)
        else:
            items.append(item)
    return replace(program, items=tuple(items))


def _repeats(step: Step) -> bool:
    """Whether a reduction lies inside of another, and no pattern has a walk for both."""
    if repeated(step.tensor.value) is None:
        return False
    group = group_of(Cluster(step.name, (step.store,)), (step,))
    return isinstance(group, Group) and group.traits.repeats is True
