"""Which steps share a kernel.

Every step reads its operands as Loads; to fuse is to replace a Load by what was computed there. A value stays
in memory only if it must: it is returned or a call of PyTorch reads it, no pattern takes producer and reader
together, or it reduces and more than one kernel would compute it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytorch_to_triton.draft.defects import concerning
from pytorch_to_triton.draft.groups import Group, in_order
from pytorch_to_triton.draft.partition.attentions import with_attentions
from pytorch_to_triton.draft.partition.grouping import grouped
from pytorch_to_triton.draft.partition.joining import joined, without_unread
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.partition.statistics import with_columns_apart
from pytorch_to_triton.draft.partition.stored_steps import with_producers_of, with_shared_reductions
from pytorch_to_triton.draft.program import Call, Program


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
