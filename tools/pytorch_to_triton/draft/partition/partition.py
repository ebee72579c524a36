"""Which steps share a kernel.

Every step reads its operands as Loads; to fuse is to replace a Load by what was computed there. A value stays
in memory only if it must: it is returned or a call of PyTorch reads it, no pattern takes producer and reader
together, or it reduces and more than one kernel would compute it.

A group stores what another one's kernel may store on its way, without reading anything again. Groups that
read the same rows are joined: sums across rows with those of rows, and siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.defects import concerning
from pytorch_to_triton.draft.groups import Group, group_of, in_order, is_large, made_by, read_by, repeats
from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import Cluster, Load, Map, Value, axes_of, walk
from pytorch_to_triton.draft.partition.placement import (
    Placement,
    with_attentions,
    with_columns_apart,
    with_producers_of,
    with_shared_reductions,
)
from pytorch_to_triton.draft.program import Call, Program, Step
from pytorch_to_triton.draft.schedule.axes import merged
from pytorch_to_triton.draft.schedule.parts import stores_as_it_reads
from pytorch_to_triton.draft.schedule.schedule import Mismatch


def partition(program: Program, outputs: Iterable[str], *, plain: bool) -> tuple[Group | Call, ...]:
    """Groups and calls in order of execution. `outputs`: steps to be stored; `plain`: one anchor each."""
    called = {r for c in program.calls for r in c.reads}
    required = frozenset(program.steps.keys() & {*outputs, *called})
    placement = _placed(program, required, plain=plain)
    groups = grouped(placement)
    if not plain:
        groups = joined(placement, groups)
    placement, groups = without_unread(placement, groups, required)
    named = [replace(g, operators=placement.operators(g.steps)) for g in groups]
    ordered = in_order(named, program.calls)
    assert ordered is not None
    return ordered


def _placed(program: Program, required: frozenset[str], *, plain: bool) -> Placement:
    """What has to lie in memory, beside what is required or wanted there."""
    wanted = {n for n, s in program.steps.items() if s.is_kept}
    placement, attended = Placement(program, required | wanted, plain), set[str]()
    if not plain:
        placement, attended = with_attentions(placement)
    for step in program.steps.values():
        if step.name not in attended:
            with concerning([step.node]):
                placement = with_producers_of(placement, step)
    placement = with_shared_reductions(placement)
    return placement if plain else with_columns_apart(placement)


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
    once = _reads_once(placement, home, step, reads) or _computes_once(placement, home, step)
    if not (of_home or siblings or once):
        return False
    axes = set(step.tensor.axes)
    # A step over fewer axes may reduce what the group stores: statistics beside the values.
    if set(last.tensor.axes) - axes and not axes < {a for s in home.steps for a in s.tensor.axes}:
        return False
    if not all(v.index == placement.steps[v.buffer.name].tensor.indices and v.where is None for v in of_home):
        return False
    if {v.buffer.name for v in reads} & placement.behind(home):
        return False
    together = placement.matched((*home.steps, step))
    if isinstance(together, Mismatch) or is_large(together) or (not siblings and repeats(together)):
        return False
    if together.traits.reduces == "both" and not stores_as_it_reads(together.cluster):
        return False
    if not together.cluster.reduces() and any(not a.size.is_Integer for a in axes - set(last.tensor.axes)):
        # Where such an axis is empty, no program stores what has elements without it.
        return False
    return together.pattern is home.pattern or not (home.cluster.reduces() or home.cluster.scans())


def _reads_once(placement: Placement, home: Group, step: Step, reads: Sequence[Load]) -> bool:
    """Whether one kernel would read once what both read in full, and write both in the same order."""
    if placement.plain or not home.traits.reads_once:
        return False
    axes, others = step.tensor.axes, home.steps[-1].tensor.axes
    if [a for a in axes if a in others] != [a for a in others if a in axes]:
        return False
    everything = set(axes if len(axes) > len(others) else others)
    in_full = {v.buffer for v in home.cluster.loads() if len(axes_of(v)) >= len(everything)}
    return any(v.buffer in in_full and everything <= axes_of(v) for v in reads)


def _computes_once(placement: Placement, home: Group, step: Step) -> bool:
    """Whether one kernel would compute once what both go on with for each element, and only compute."""
    last = home.steps[-1]
    if placement.plain or step.tensor.axes != last.tensor.axes or not home.traits.joins:
        return False
    axes = set(step.tensor.axes)
    of_both = ({*walk(placement.value(s.name))} for s in (last, step))
    return any(
        isinstance(v, Map) and axes_of(v) == axes and any(isinstance(x, Load) for x in walk(v))
        for v in set.intersection(*of_both)
    )


def _of_copy(placement: Placement, home: Group, step: Step) -> Group | None:
    """The step's sums across rows of a copy that the group stores, if its rows lie better there."""
    copies = any(isinstance(s.value, Load) for s in home.cluster.stores)
    if placement.plain or not copies or not placement.has_anchor(step.name):
        return None
    together = placement.matched((*home.steps, step))
    if isinstance(together, Mismatch) or together.traits.reduces != "both":
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
    return group if isinstance(group, Group) and group.traits.reduces == "columns" else None


def joined(placement: Placement, groups: Sequence[Group]) -> list[Group]:
    """The groups, each with all others that may be in its kernel."""
    left = list(groups)
    for home in [g for g in groups if g.traits.reads_once and g.traits.reduces != "both"]:
        while home in left and (more := _with_another(placement, left, home)):
            home, left = more
    return left


def _with_another(
    placement: Placement, groups: Sequence[Group], home: Group
) -> tuple[Group, list[Group]] | None:
    """The group with the first that may be in its kernel, and all groups then; None where none may."""
    for other in (g for g in groups if g is not home):
        if both := _together(placement, home, other):
            left = [both if g is other else g for g in groups if g is not home]
            if in_order(left, placement.program.calls):
                return both, left
    return None


def _together(placement: Placement, home: Group, other: Group) -> Group | None:
    """Both in one kernel, if it reads once what each would read, and neither waits for the other."""
    read = {v.buffer.name for v in home.cluster.largest_loads()} & read_by(other)
    if not read and not read_by(home) & set(made_by(other)):
        return None
    made = {*made_by(home), *made_by(other)}
    both = placement.matched(placement.in_order_of_program(made))
    if isinstance(both, Mismatch) or is_large(both) or repeats(both):
        return None
    if both.traits.joins is None or not both.traits.joins(both.cluster):
        return None
    waits = (read_by(both) - made) & (placement.behind(home) | placement.behind(other))
    return both if stores_as_it_reads(both.cluster) and not waits else None


def without_unread(
    placement: Placement, groups: Sequence[Group], required: frozenset[str]
) -> tuple[Placement, list[Group]]:
    """The groups without stores that nothing reads and nobody requires, now that their readers are joined.

    A group of which nothing is left is gone: its reader looks at another part of what it joins.
    """
    left: list[Group] = []
    for group in groups:
        read = required.union(*(read_by(g) for g in groups if g is not group))
        steps = tuple(s for s in group.steps if s.name in read)
        if len(steps) == len(group.steps):
            left.append(group)
            continue
        fewer = replace(placement, stored=placement.stored - ({*made_by(group)} - read))
        without = fewer.group(steps) if steps else None
        if without is None or without.pattern is group.pattern:
            placement = fewer
            left += [without] if without else []
        else:
            left.append(group)
    return placement, left
