"""A case as a set of conditions: its sizes, and the parts of its label."""

from collections.abc import Iterable, Iterator
from functools import reduce

from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.validate.plan import NO_CHANGE, SEPARATOR, Change, PlanBuilder


def parts_of(label: str) -> list[str]:
    """The conditions that a label names: `bfloat16, x transposed, negative`."""
    return label.split(SEPARATOR) if label else []


def change_of(plan: PlanBuilder, parts: Iterable[str]) -> Change:
    """What the conditions stand for together. Raises KeyError for one that the plan does not know."""
    return reduce(Change.joined, (plan.labels[part][1] for part in parts), NO_CHANGE)


def group_of(plan: PlanBuilder, point: Point, parts: Iterable[str]) -> Group:
    """Why a case of these conditions is made: the one that is not declared, or that several meet."""
    groups = list(dict.fromkeys(plan.labels[part][0] for part in parts))
    of_sizes = size_group(plan, point)
    if of_sizes == "declared":
        return "combined" if len(groups) > 1 else groups[0] if groups else "declared"
    return "combined" if groups else of_sizes


def size_group(plan: PlanBuilder, point: Point) -> Group:
    """What is unusual about sizes: the first that applies; `declared` where each size is, or is the base's."""
    return next(_size_groups(plan, point), "declared")


def _size_groups(plan: PlanBuilder, point: Point) -> Iterator[Group]:
    declared = plan.declaration.dims
    others = {n: size for n, size in point.items() if size not in (*declared[n], plan.base.get(n))}
    if 0 in others.values():
        yield "empty"
    if any(size > max(declared[name]) for name, size in others.items()):
        yield "beyond"
    if 1 in others.values():
        yield "one"
    if others:
        yield "odd"
