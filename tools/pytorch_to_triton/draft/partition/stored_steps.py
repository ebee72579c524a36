"""Which steps have to lie in memory: a pattern takes the others with their readers, and nothing is computed
again and again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pytorch_to_triton.draft.groups import Group, is_large, repeats
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Const, Index, Load, Map, Reduce, axes_of, walk
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.partition.statistics import with_statistics_of_columns
from pytorch_to_triton.draft.patterns import rows, window
from pytorch_to_triton.draft.program import Step, anchors_of

LONG = frozenset({"sin", "cos", "tan", "pow"})
"""Functions of dozens of instructions, more than memory leaves time for."""
FEWEST_READS = 16
"""Elements that a value has to be computed for, to be worth a kernel and its launch."""


def with_producers_of(placement: Placement, step: Step) -> Placement:
    """Producers stored until a pattern takes the step with those that are left."""
    while True:
        inside = placement.direct(step)
        anchors = [n for n in inside if placement.has_anchor(n)]
        if placement.plain and anchors and not _is_epilogue(placement, anchors, step):
            placement = placement.storing(anchors)
            continue
        if beside := _laid_side_by_side(placement, step, anchors):
            placement = placement.storing(beside)
            continue
        matched = placement.matched((step,))
        if isinstance(matched, Group) and not is_large(matched):
            once = not repeats(matched) or _goes_on_with_windows(placement, step, anchors, matched)
            if once or all(map(placement.repeats_along_axes, anchors)):
                return placement.storing(n for n in inside if _is_table(placement, n, step))
        if not inside:
            return placement
        with_statistics = with_statistics_of_columns(placement, step, anchors)
        placement = with_statistics or placement.storing((anchors or inside)[-1:])


def with_shared_reductions(placement: Placement) -> Placement:
    """Steps stored that reduce and that more than one kernel would compute."""
    while shared := _computed_twice(placement):
        placement = placement.storing(shared)
    return placement


def _is_epilogue(placement: Placement, anchors: Sequence[str], step: Step) -> bool:
    """Whether the step only goes on with the one result that it reads."""
    if step.anchors or len(anchors) != 1:
        return False
    return set(placement.steps[anchors[0]].tensor.axes) == set(step.tensor.axes)


def _laid_side_by_side(placement: Placement, step: Step, anchors: Sequence[str]) -> list[str]:
    """Sums of the same rows that the step only joins: it would read the rows again for each of them."""
    if placement.plain or step.anchors:
        return []
    guarded = {v.buffer.name for v in walk(step.tensor.value) if isinstance(v, Load) and v.where is not None}
    parts = [n for n in anchors if n in guarded and _is_sum(placement, n)]
    read = [{v.buffer.name for v in walk(placement.value(n)) if isinstance(v, Load)} for n in parts]
    return parts if len(parts) > 1 and set.intersection(*read) else []


def _is_sum(placement: Placement, name: str) -> bool:
    """Whether the step is smaller than what it reduces."""
    reduces = [v for v in walk(placement.value(name)) if isinstance(v, Reduce)]
    return bool(reduces) and not any(set(r.axes) & set(placement.steps[name].tensor.axes) for r in reduces)


def _is_table(placement: Placement, name: str, reader: Step) -> bool:
    """Whether the reader would compute long functions of it for each row, where loads give the same."""
    value = placement.value(name)
    if anchors_of(value):
        return False
    everything = {a for v in walk(reader.tensor.value) for a in axes_of(v)}
    reads = [v for v in walk(reader.tensor.value) if isinstance(v, Load) and v.buffer.name == name]
    again = [product(a.size for a in everything - axes_of(v)) for v in reads]
    long = any(isinstance(v, Map) and v.fn in LONG and len(axes_of(v)) > 1 for v in walk(value))
    return long and all(not n.is_Integer or int(n) >= FEWEST_READS for n in again)


def _goes_on_with_windows(placement: Placement, step: Step, anchors: Sequence[str], group: Group) -> bool:
    """Whether each window is computed just once: for the one element that goes on with it."""
    if group.pattern is not window or step.anchors:
        return False
    alone = [*placement.matched_alone(anchors)]
    if len(alone) < len(anchors) or any(g.pattern is not window for g in alone):
        return False
    reads = [v for v in walk(step.tensor.value) if isinstance(v, Load) and v.buffer.name in anchors]
    plain = all(v.where is None and all(isinstance(i, Index | Const) for i in v.index) for v in reads)
    return plain and all(set(step.tensor.axes) <= axes_of(v) for v in reads)


def _computed_twice(placement: Placement) -> set[str]:
    readers: dict[str, set[str]] = {}
    for name in placement.stored:
        for inner in placement.inside(name):
            readers.setdefault(inner, set()).add(name)
    twice = {n for n, by in readers.items() if len(by) > 1 and placement.steps[n].anchors}
    twice = {n for n in twice if placement.plain or not _is_computed_at_once(placement, readers[n])}
    # Only the outermost: what they compute themselves is computed once then.
    return {n for n in twice if not any(n in placement.inside(m) for m in twice)}


def _is_computed_at_once(placement: Placement, names: Collection[str]) -> bool:
    """Whether one kernel of rows computes all of these: what they share is computed once there."""
    both = placement.matched(placement.in_order_of_program(names))
    return isinstance(both, Group) and both.pattern is rows and not is_large(both) and not repeats(both)
