"""Cases by name: any allowed sizes, and conditions that the plan knows, make a case again."""

import re
from collections.abc import Collection
from difflib import get_close_matches

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.plan import PlanBuilder, name_of, parts_of

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
    parts = parts_of(label)
    for part in parts:
        if part not in plan.labels:
            raise _unknown_condition(plan, point, part, planned)
    if (case := plan.combined(point, parts)) is not None:
        return case
    why = plan.problem(point, plan.change_of(parts)) or ""
    hint = f"Name other sizes. {_nearest(name, planned)}"
    raise BadInput(f"The case {name_of(point, label)} cannot be run: {why.rstrip('.')}.", hint)


def _sizes_and_label(plan: PlanBuilder, name: str, planned: Collection[str]) -> tuple[Point, str]:
    """The sizes that the name starts with, in the declaration's order, and what follows them."""
    dims, words, sizes = plan.declaration.dims, name.split(), Point()
    while words and "=" in words[0]:
        dim, _, size = words.pop(0).partition("=")
        if dim not in dims:
            dims_text = f"Dimensions are {', '.join(dims)}." if dims else "The target has no dimensions."
            raise BadInput(f"The case {name} names {dim}, which is no dimension.", dims_text)
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


def _unknown_condition(plan: PlanBuilder, point: Point, condition: str, planned: Collection[str]) -> BadInput:
    nearest = _nearest(name_of(point, condition), planned)
    if condition in plan.skipped:
        return BadInput(f"{condition} is left out: {plan.skipped[condition]}.", nearest)
    similar = get_close_matches(condition, plan.labels, n=_NAMES_SHOWN, cutoff=_SIMILAR)
    if similar:
        nearest = f"Nearest: {'; '.join(name_of(point, near) for near in similar)}."
    return BadInput(f"No case has the condition {condition!r}.", nearest)


def _nearest(name: str, planned: Collection[str]) -> str:
    near = get_close_matches(name, planned, n=_NAMES_SHOWN, cutoff=_SIMILAR)
    shown = near or list(planned)[:_NAMES_SHOWN]
    return f"Nearest: {'; '.join(shown)}." if shown else "Validate without naming a case to see all of them."
