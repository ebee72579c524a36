"""A case as a set of conditions: its sizes, and the parts of its label."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import get_args

from pytorch_to_triton.inputs.case import Case, Fill
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.validate.plan import NO_CHANGE, SEPARATOR, Change, PlanBuilder


def parts_of(label: str) -> list[str]:
    """The conditions that a label names: `bfloat16, x transposed, negative`."""
    return label.split(SEPARATOR) if label else []


def names_values(name: str) -> bool:
    """Whether a case's name says that its values are special: `N=3 bfloat16, negative`."""
    last = parts_of(name.rpartition("=")[2])
    words = " ".join(last).split(" ", 1)[-1]
    return any(f" {fill.replace('_', ' ')} " in f" {words} " for fill in get_args(Fill))


def combined_case(plan: PlanBuilder, point: Point, parts: Iterable[str]) -> Case | None:
    """The case of these sizes and conditions; None where it cannot be run.

    Raises KeyError for a condition that the plan does not know.
    """
    named = list(parts)
    change = change_of(plan, named)
    if plan.problem(point, change) is not None:
        return None
    return plan.case(conditions_of(plan, point, named), point, change)


def change_of(plan: PlanBuilder, parts: Iterable[str]) -> Change:
    """What the parts of a label stand for together."""
    return reduce(Change.joined, (plan.labels[part][1] for part in parts), NO_CHANGE)


def conditions_of(plan: PlanBuilder, point: Point, parts: Iterable[str]) -> tuple[Group, ...]:
    """What is not declared about a case, each once."""
    return tuple(dict.fromkeys((*_of_sizes(plan, point), *(plan.labels[part][0] for part in parts))))


def _of_sizes(plan: PlanBuilder, point: Point) -> Iterator[Group]:
    """What is unusual about sizes that are neither declared nor the base's: the first that applies."""
    declared = plan.declaration.dims
    others = {n: size for n, size in point.items() if size not in (*declared[n], plan.base.get(n))}
    if 0 in others.values():
        yield "empty"
    elif any(size > max(declared[name]) for name, size in others.items()):
        yield "beyond"
    elif 1 in others.values():
        yield "one"
    elif others:
        yield "odd"
