"""Groups that read the same rows in one kernel: sums across rows with those of rows, and siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.groups import Group, in_order, is_large, made_by, read_by, repeats
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.patterns import columns, pointwise, row_totals, rows, rows_with_column_sums
from pytorch_to_triton.draft.patterns.rows_with_column_sums import largest, stores_as_it_reads
from pytorch_to_triton.draft.schedule.axes import innermost
from pytorch_to_triton.draft.schedule.schedule import Mismatch

JOINED = (rows_with_column_sums, row_totals, rows, pointwise)
"""Patterns that compute several results of the same rows in one kernel."""
MOST_READ = 8
"""Loads of a program that walks rows and sums across them: with more, such as all neighbours of a window, few
rows are on their way at once."""


def joined(placement: Placement, groups: Sequence[Group]) -> list[Group]:
    """The groups, each with all others that may be in its kernel."""
    left = list(groups)
    for home in [g for g in groups if g.pattern in (columns, rows, pointwise)]:
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
    read = {v.buffer.name for v in largest(home.cluster)} & read_by(other)
    if not read and not read_by(home) & set(made_by(other)):
        return None
    made = {*made_by(home), *made_by(other)}
    both = placement.matched(placement.in_order_of_program(made))
    if isinstance(both, Mismatch) or both.pattern not in JOINED or is_large(both) or repeats(both):
        return None
    if both.pattern in (row_totals, rows) and not _lies_in_rows(both):
        return None
    if both.pattern is rows_with_column_sums and len({*largest(both.cluster)}) > MOST_READ:
        return None
    waits = (read_by(both) - made) & (placement.behind(home) | placement.behind(other))
    return both if stores_as_it_reads(both.cluster) and not waits else None


def _lies_in_rows(group: Group) -> bool:
    """Whether neighbours in memory are reduced together wherever most is read."""
    reduced = {a for r in group.cluster.reduces() for a in r.axes}
    return all(innermost(load) in reduced for load in largest(group.cluster))


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
