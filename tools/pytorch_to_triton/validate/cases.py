"""Which calls a validation makes: the declared sizes, then sizes, layouts and values that break kernels.

Dimensions vary one at a time from a middle point, never as a product; the all-smallest and all-largest
corners join them. Whatever is left out is listed with the reason.
"""

from pytorch_to_triton.schema.case import Case, DType, Layout, tensors_in
from pytorch_to_triton.schema.declaration import Declaration
from pytorch_to_triton.schema.expression import names_in
from pytorch_to_triton.schema.sizes import Point, largest_point, middle_point, smallest_point
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.validate.case_names import case_named
from pytorch_to_triton.validate.plan import Change, Limits, Plan
from pytorch_to_triton.validate.special_values import add_non_finite, add_specials, free_tensors

PRIME = 13
"""An odd size below most blocks."""
LONG_BATCH = 257
"""A batch of so many rows is tried where the declared ones stay a row below it and more."""
DETAIL_ELEMENTS = 2**20
"""Largest case of those that only the layout, the values or an odd size make telling."""
DETAIL_SHARE = 8
"""They are also smaller than the limit, by this factor: there are dozens of them."""
_STEPS_TRIED = 1_024
_FAR_ROWS = 3
"""From three rows on, the stride of a far tensor fits 32 bits and the offset does not."""
_LAYOUTS: tuple[Layout, ...] = ("transposed", "expanded", "sliced", "offset")


class CasePlan(Value):
    """What a validation runs, in order, and what it leaves out."""

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]


def plan_cases(
    declaration: Declaration, *, limit_elements: int, limit_span_bytes: int | None = None
) -> CasePlan:
    """The cases of a validation; none holds more than `limit_elements` elements over all its tensors.

    Where no combination of declared sizes fits the limit, halved ones stand in (group `reduced`). Without
    any that can be drawn the plan has no cases, and says why. Far tensors, whose storage spans gigabytes, are
    planned up to `limit_span_bytes` a call; None: not at all.
    """
    plan = _planned(declaration, Limits(limit_elements, limit_span_bytes))
    skipped = tuple(Skip(what=what, why=why) for what, why in plan.skipped.items())
    return CasePlan(cases=plan.in_order(), skipped=skipped)


def case_for(
    declaration: Declaration, name: str, *, limit_elements: int, limit_span_bytes: int | None = None
) -> Case:
    """The case of this name again, also at sizes that the plan does not hold: `M=3 N=5 x transposed`.

    The values are drawn from the name, so that the same seed gives the same. Raises BadInput, with the
    nearest names, for an unknown label or dimension, a missing size, and sizes that cannot be run.
    """
    return case_named(_planned(declaration, Limits(limit_elements, limit_span_bytes)), name)


def _planned(declaration: Declaration, limits: Limits) -> Plan:
    plan = Plan(declaration, limits)
    base = plan.add_nearest("declared", middle_point(declaration.dims))
    if base is not None:
        _add_declared(plan, base)
        _add_repeats(plan, base)
        with plan.limited_to(min(DETAIL_ELEMENTS, limits.elements // DETAIL_SHARE)):
            detail = plan.nearest(base)
            _add_generated(plan, detail)
        _add_dtypes(plan, base, detail)
        _add_layouts(plan, detail)
        _add_far(plan, detail)
        add_specials(plan, detail)
    return plan


def _add_declared(plan: Plan, base: Point) -> None:
    dims = plan.declaration.dims
    for name, sizes in dims.items():
        for size in sizes:
            plan.add_nearest("declared", {**base, name: size}, fixed=name)
    for corner in (smallest_point(dims), largest_point(dims)):
        plan.add("declared", corner)


def _add_repeats(plan: Plan, base: Point) -> None:
    """The middle and the largest declared case that fits, called a second time."""
    largest = max(plan.cases.values(), key=_elements)
    for point in (base, largest.dims):
        plan.repeat(point)


def _elements(case: Case) -> int:
    return sum(tensor.elements for tensor in tensors_in(case.arguments))


def _add_dtypes(plan: Plan, base: Point, detail: Point) -> None:
    """Each further claimed dtype; tensors that claim the same dtypes change together.

    At the middle, both corners and an odd size; also with inf and NaN in one of the tensors.
    """
    dims = plan.declaration.dims
    claims: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in plan.declaration.tensors().items():
        claims.setdefault(tensor.dtypes, []).append(name)
    several = {dtypes: names for dtypes, names in claims.items() if len(dtypes) > 1}
    odd = _odd_point(plan, detail)
    for dtypes, names in several.items():
        free = [name for name in names if name in free_tensors(plan)]
        for dtype in dtypes[1:]:
            label = dtype if len(several) == 1 else f"{dtype} {','.join(names)}"
            change = Change(label, dtypes=dict.fromkeys(names, dtype))
            for point in (base, smallest_point(dims), largest_point(dims)):
                plan.add("dtype", point, change)
            if odd is not None:
                plan.add("odd", odd, change)
            for name in free[:1]:
                add_non_finite(plan, detail, name, change)


def _odd_point(plan: Plan, base: Point) -> Point | None:
    """A planned odd size, of the last dimension where there is one."""
    points = [case.dims for case in plan.cases.values() if case.group == "odd"]
    last = next(reversed(base), None)
    in_last = (point for point in points if last is not None and point[last] != base[last])
    return next(in_last, points[0] if points else None)


def _add_generated(plan: Plan, base: Point) -> None:
    """Odd, one-element and empty sizes, powers of two and long batches, one dimension at a time."""
    for name, size in base.items():
        largest = max(plan.declaration.dims[name])
        for odd in (size + 1 + size % 2, PRIME, largest + 1 + largest % 2):
            plan.add_nearest("odd", {**base, name: odd}, fixed=name)
        if (allowed := _uneven_size(plan, base, name)) is not None:
            plan.add("odd", {**base, name: allowed})
        plan.add_nearest("one", {**base, name: 1}, fixed=name)
        plan.add_nearest("empty", {**base, name: 0}, fixed=name)
        for power in dict.fromkeys(map(_near_power_of_two, (size, largest))):
            for near in (power - 1, power, power + 1):
                plan.add_nearest("power_of_two", {**base, name: near}, fixed=name)
    for name in _batches(plan.declaration):
        if max(plan.declaration.dims[name]) < LONG_BATCH - 1:
            plan.add_nearest("batch", {**base, name: LONG_BATCH}, fixed=name)


def _uneven_size(plan: Plan, base: Point, name: str) -> int | None:
    """The next size that is no power of two, where requirements such as `N % 16 == 0` allow no odd one."""
    if not any(name in names_in(text) for text in plan.declaration.requires):
        return None
    candidates = range(base[name] + 1, base[name] + _STEPS_TRIED + 1)
    uneven = (size for size in candidates if size.bit_count() > 1)
    return next((size for size in uneven if plan.problem({**base, name: size}) is None), None)


def _near_power_of_two(size: int) -> int:
    """The power of two nearest to the size, 2 at least; the lower of two."""
    below = max(2, 1 << (size.bit_length() - 1)) if size else 2
    return min((below, 2 * below), key=lambda power: abs(power - size))


def _batches(declaration: Declaration) -> list[str]:
    """The dimensions that the first sizes of tensors of two dimensions and more name."""
    firsts = [tensor.shape[0] for tensor in declaration.tensors().values() if len(tensor.shape) > 1]
    named = frozenset[str]().union(*map(names_in, firsts))
    return [name for name in declaration.dims if name in named]


def _add_layouts(plan: Plan, base: Point) -> None:
    """Each tensor of one dimension or more in each memory layout; a vector has no transpose."""
    tensors = plan.declaration.tensors()
    if not plan.declaration.inputs:
        plan.leave_out("layouts and special values", "the target draws its own inputs")
    for name, tensor in tensors.items():
        for layout in _LAYOUTS[2 * (len(tensor.shape) < 2) :] if tensor.shape else ():
            plan.add("layout", base, Change(f"{name} {layout}", layouts={name: layout}))


def _add_far(plan: Plan, base: Point) -> None:
    """Each tensor at offsets past 2^31 elements, one at a time, at the smallest sizes that leave it rows."""
    dims = plan.declaration.dims
    few = {
        name: min((size for size in sizes if size >= _FAR_ROWS), default=base[name])
        for name, sizes in dims.items()
    }
    point = few if plan.problem(few) is None else base
    for name in plan.declaration.tensors():
        change = Change(f"{name} far", layouts={name: "far"})
        plan.know("far", change)
        if why := plan.problem(point, change):
            plan.leave_out(f"offsets beyond 2^31 elements in {name}", why)
        else:
            plan.add("far", point, change)
