"""Statistics of columns in memory: fewer bytes than what is computed with them, which a kernel of rows that
reads the same goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.groups import Group, read_by
from pytorch_to_triton.draft.ir.values import Reduce, Value, walk
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.patterns import columns, rows
from pytorch_to_triton.draft.patterns.rows_with_column_sums import largest
from pytorch_to_triton.draft.program import Step, anchors_of, taken_apart


def with_statistics_of_columns(placement: Placement, step: Step, anchors: Sequence[str]) -> Placement | None:
    """The statistics stored of the last anchor that reduces columns; None where that spares nothing.

    It spares something where the step goes on with that anchor and with a result of rows.
    """
    if placement.plain or step.anchors:
        return None
    groups = {g.steps[0].name: g.pattern for g in placement.matched_alone(anchors)}
    across = [n for n, p in groups.items() if p is columns and not placement.repeats_along_axes(n)]
    if not across or rows not in groups.values():
        return None
    return _with_reductions_stored(placement, placement.steps[across[-1]])


def with_columns_apart(placement: Placement) -> Placement:
    """The same for all that stores columns which it reduces, where a kernel of rows reads what it reads."""
    groups = [*placement.matched_alone(n for n in placement.steps if n in placement.stored)]
    read = {b for g in groups if g.pattern is rows for b in read_by(g)}
    for group in groups:
        if group.pattern is columns and _stores_all(group) and read & _read_in_full(group):
            placement = _with_reductions_stored(placement, group.steps[0]) or placement
    return placement


def _stores_all(group: Group) -> bool:
    return {a for r in group.cluster.reduces() for a in r.axes} <= set(group.cluster.free())


def _read_in_full(group: Group) -> set[str]:
    return {v.buffer.name for v in largest(group.cluster)}


def _with_reductions_stored(placement: Placement, step: Step) -> Placement | None:
    """A step for each of its reductions, inner ones first; None where one carries several values."""
    value, program = placement.value(step.name), placement.program
    if not all(v.monoid.is_plain for v in anchors_of(value)):
        return None
    taken = {*placement.steps, *(i.name for i in program.graph.inputs)}
    *parts, whole = taken_apart(step, value, _first_reduction, taken)
    apart = (*(replace(part, is_kept=True) for part in parts), whole)
    items = tuple(new for i in program.items for new in (apart if i is step else (i,)))
    return replace(placement, program=replace(program, items=items)).storing(p.name for p in parts)


def _first_reduction(value: Value) -> Reduce | None:
    return next((v for v in walk(value) if isinstance(v, Reduce)), None)
