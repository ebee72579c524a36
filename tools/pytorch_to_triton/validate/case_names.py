"""Cases by name: any allowed sizes, and a label that the plan knows, make a case again."""

import re
from collections.abc import Collection
from difflib import get_close_matches

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.plan import NO_CHANGE, PlanBuilder, name_of

_NAMES_SHOWN = 3
_SIMILAR = 0.4


def case_named(plan: PlanBuilder, name: str) -> Case:
    """The case of this name: as planned, else built from its sizes and its label.

    Raises BadInput for a dimension, a size or a label that does not fit, and where the case cannot be run.
    """
    name = " ".join(name.split())
    planned = {case.name: case for case in plan.in_order()}
    if name in planned:
        return planned[name]
    point, label = _sizes_and_label(plan, name, planned)
    if label and label not in plan.labels:
        raise _unknown_label(plan, point, label, planned)
    group, change = plan.labels.get(label, ("requested", NO_CHANGE))
    canonical = name_of(point, label)
    if canonical in planned:
        return planned[canonical]
    if why := plan.problem(point, change):
        hint = f"Name other sizes. {_nearest(canonical, planned)}"
        raise BadInput(f"The case {canonical} cannot be run: {why.rstrip('.')}.", hint)
    return plan.case(group, point, change)


def _sizes_and_label(plan: PlanBuilder, name: str, planned: Collection[str]) -> tuple[Point, str]:
    """The sizes that the name starts with, in the declaration's order, and what follows them."""
    dims, words, sizes = plan.declaration.dims, name.split(), Point()
    while words and "=" in words[0]:
        dim, _, size = words.pop(0).partition("=")
        if dim not in dims:
            known = f"Dimensions are {', '.join(dims)}." if dims else "The target has no dimensions."
            raise BadInput(f"The case {name} names {dim}, which is no dimension.", known)
        if dim in sizes:
            raise BadInput(f"The case {name} names {dim} twice.", f"Keep one {dim}=SIZE.")
        if not re.fullmatch(r"[0-9]{1,18}", size):
            raise BadInput(
                f"The case {name}: {size!r} is no size of {dim}.",
                "Sizes are integers, 0 or more; a label follows after a space.",
            )
        sizes[dim] = int(size)
    if missing := [dim for dim in dims if dim not in sizes]:
        hint = f"Start with {' '.join(f'{dim}=SIZE' for dim in dims)}. {_nearest(name, planned)}"
        raise BadInput(f"The case {name} has no size of {', '.join(missing)}.", hint)
    return {dim: sizes[dim] for dim in dims}, " ".join(words)


def _unknown_label(plan: PlanBuilder, point: Point, label: str, planned: Collection[str]) -> BadInput:
    nearest = _nearest(name_of(point, label), planned)
    if label in plan.skipped:
        return BadInput(f"{label} is left out: {plan.skipped[label]}.", nearest)
    similar = get_close_matches(label, plan.labels, n=_NAMES_SHOWN, cutoff=_SIMILAR)
    if similar:
        nearest = f"Nearest: {', '.join(name_of(point, near) for near in similar)}."
    return BadInput(f"No case has the label {label!r}.", nearest)


def _nearest(name: str, planned: Collection[str]) -> str:
    near = get_close_matches(name, planned, n=_NAMES_SHOWN, cutoff=_SIMILAR)
    shown = near or list(planned)[:_NAMES_SHOWN]
    return f"Nearest: {', '.join(shown)}." if shown else "Validate without naming a case to see all of them."
