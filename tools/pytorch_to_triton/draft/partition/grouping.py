"""Stored steps in groups: what another one's kernel may store on its way, without reading anything again."""

from __future__ import annotations

from collections.abc import Sequence

from pytorch_to_triton.draft.groups import Group, group_of, in_order, is_large, repeats
from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import Cluster, Load, Value, axes_of, walk
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.patterns import (
    attention,
    columns,
    contraction,
    pointwise,
    rows_with_column_sums,
    window,
)
from pytorch_to_triton.draft.patterns.rows_with_column_sums import stores_as_it_reads
from pytorch_to_triton.draft.program import Step
from pytorch_to_triton.draft.schedule.axes import merged
from pytorch_to_triton.draft.schedule.schedule import Mismatch


def grouped(placement: Placement) -> list[Group]:
    """All stored steps, each in the first group that may store it, else in a new one."""
    groups: list[Group] = []
    for step in placement.in_order_of_program(placement.stored):
        groups = _with(placement, groups, step)
    return groups


def _with(placement: Placement, groups: list[Group], step: Step) -> list[Group]:
    for at, home in enumerate(groups):
        if _may_store(placement, home, step):
            shared = [*groups[:at], placement.group((*home.steps, step)), *groups[at + 1 :]]
            if in_order(shared, placement.program.calls):
                return shared
    of_copies = (group for home in groups if (group := _of_copy(placement, home, step)))
    return [*groups, next(of_copies, None) or placement.group((step,))]


def _may_store(placement: Placement, home: Group, step: Step) -> bool:
    """Whether the group's values are stored anyway on the way to this one, over the same axes."""
    if placement.plain and step.anchors:
        return False
    last = home.steps[-1]
    names = {s.name for s in home.steps}
    reads = [v for v in walk(placement.value(step.name)) if isinstance(v, Load)]
    of_home = [v for v in reads if v.buffer.name in names]
    siblings = step.node is last.node and set(step.tensor.axes) == set(last.tensor.axes)
    if not step.is_kept and any(placement.steps[v.buffer.name].is_kept for v in of_home):
        return False
    if not (of_home or siblings or _reads_once(placement, home, step, reads)):
        return False
    if set(last.tensor.axes) - set(step.tensor.axes) and not _reduces_values_of(home, step):
        return False
    if not all(v.index == placement.steps[v.buffer.name].tensor.indices and v.where is None for v in of_home):
        return False
    if {v.buffer.name for v in reads} & placement.behind(home):
        return False
    together = placement.matched((*home.steps, step))
    if isinstance(together, Mismatch) or is_large(together) or (not siblings and repeats(together)):
        return False
    if together.pattern is rows_with_column_sums and not stores_as_it_reads(together.cluster):
        return False
    return together.pattern is home.pattern or home.pattern is pointwise


def _reads_once(placement: Placement, home: Group, step: Step, reads: Sequence[Load]) -> bool:
    """Whether one kernel would read once what both read in full, and write both in the same order."""
    if placement.plain or home.pattern in (contraction, window, attention):
        return False
    axes, others = step.tensor.axes, home.steps[-1].tensor.axes
    if [a for a in axes if a in others] != [a for a in others if a in axes]:
        return False
    everything = set(axes if len(axes) > len(others) else others)
    in_full = {v.buffer for v in home.cluster.loads() if len(axes_of(v)) >= len(everything)}
    return any(v.buffer in in_full and everything <= axes_of(v) for v in reads)


def _reduces_values_of(home: Group, step: Step) -> bool:
    """Whether the step reduces what the group stores: statistics beside the values."""
    return set(step.tensor.axes) < {a for s in home.steps for a in s.tensor.axes}


def _of_copy(placement: Placement, home: Group, step: Step) -> Group | None:
    """The step's sums across rows of a copy that the group stores, if its rows lie better there."""
    copies = any(isinstance(s.value, Load) for s in home.cluster.stores)
    if placement.plain or not copies or not placement.has_anchor(step.name):
        return None
    together = placement.matched((*home.steps, step))
    if isinstance(together, Mismatch) or together.pattern is not rows_with_column_sums:
        return None
    if stores_as_it_reads(together.cluster):
        return None
    *stored, last = together.cluster.stores
    copied: dict[Value, Value] = {
        s.value: Load(s.buffer, s.index, name=s.buffer.name)
        for s in stored
        if isinstance(s.value, Load) and s.value.buffer.dtype == s.buffer.dtype
    }
    cluster = Cluster(step.name, (last.map(lambda v: rewrite(v, copied.get)),))
    group = group_of(merged(cluster), (step,))
    return group if isinstance(group, Group) and group.pattern is columns else None
