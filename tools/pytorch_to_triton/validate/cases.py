"""Which calls a validation makes: the declared sizes, then sizes, layouts and values that break kernels.

Dimensions vary one at a time from a middle point, never as a product; the all-smallest and all-largest
corners, a point with all sizes odd, one with all alike and a few random ones join them. Whatever is
left out is listed with the reason.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.inputs.sizes import Point, largest_point, middle_point, smallest_point
from pytorch_to_triton.schema.dtype import ITEM_BYTES, DType
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.validate.case_names import case_named
from pytorch_to_triton.validate.host_code import MOST_SWITCHES, Switch, ways_taken
from pytorch_to_triton.validate.layout_cases import (
    add_all_strided,
    add_large_strides,
    add_layouts,
    add_strided_past,
)
from pytorch_to_triton.validate.plan import CaseSizeLimits, Change, PlanBuilder, name_of
from pytorch_to_triton.validate.special_values import (
    add_magnitudes,
    add_non_finite,
    add_specials,
    free_tensors,
    is_floating,
)

PRIME = 13
"""An odd size below most blocks."""
LONG_BATCH = 257
"""A batch of so many rows is tried where the declared ones stay a row below it and more."""
DETAIL_ELEMENTS = 2**20
"""Largest case of those that matter only for their layout, values or odd sizes."""
DETAIL_SHARE = 8
"""They are also smaller than the limit, by this factor: there are dozens of them."""
RANDOM_POINTS = 3
"""Points at random: a kernel made for the planned sizes cannot know them."""
OPTION_FACTOR = 10.0
"""A float constant is tried at so many times its value."""
ROUND_STEPS = (16, 128)
"""Tried past such a size where requirements ask for multiples."""
_STEPS_TRIED = 1_024
_RANDOM_TRIES = 1_000
_FURTHER_ODD = 3


class CasePlan(Value):
    """What a validation runs, in order, and what it leaves out."""

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]


def plan_cases(
    declaration: Declaration,
    *,
    limit_elements: int,
    limit_span_bytes: int | None = None,
    seed: int | None = None,
    all_mixtures: bool = False,
    switches: Sequence[Switch] = (),
) -> CasePlan:
    """The cases of a validation; none holds more than `limit_elements` elements over all its tensors.

    Where no combination of declared sizes fits the limit, halved ones stand in (group `reduced`). Without
    any that can be generated the plan has no cases, and says why. Large strides, which span gigabytes, are
    planned up to `limit_span_bytes` a call; None: not at all. The seed adds random sizes; None: none.
    Mixtures of short dtypes alone, such as bfloat16 with float16, are planned with `all_mixtures`. Past each
    of the `switches` there is a case, so that each way the candidate takes is tried.
    """
    limits = CaseSizeLimits(limit_elements, limit_span_bytes)
    plan = _planned(declaration, limits, seed, switches, all_mixtures=all_mixtures)
    skipped = {what: why for what, why in plan.skipped.items() if what not in plan.untried}
    untried = (Skip(what=what, why=why, declared=True) for what, why in plan.untried.items())
    others = (Skip(what=what, why=why) for what, why in skipped.items())
    return CasePlan(cases=plan.in_order(), skipped=(*untried, *others))


def case_for(
    declaration: Declaration,
    name: str,
    *,
    limit_elements: int,
    limit_span_bytes: int | None = None,
    seed: int | None = None,
) -> Case:
    """The case of this name again, also at sizes that the plan does not hold: `M=3 N=5 x transposed`.

    The values are generated from the name, so that the same seed gives the same. Random sizes need no seed
    here; without it they are of group `requested`. Raises BadInput, with the nearest names, for an unknown
    label or dimension, a missing size, and sizes that cannot be run.
    """
    limits = CaseSizeLimits(limit_elements, limit_span_bytes)
    return case_named(_planned(declaration, limits, seed, (), all_mixtures=True), name)


def _planned(
    declaration: Declaration,
    limits: CaseSizeLimits,
    seed: int | None,
    switches: Sequence[Switch],
    *,
    all_mixtures: bool,
) -> PlanBuilder:
    plan = PlanBuilder(declaration, limits)
    base = plan.add_nearest("declared", middle_point(declaration.dims))
    if base is not None:
        _add_declared(plan, base)
        plan.note_untried()
        _add_repeats(plan, base)
        with plan.limited_to(min(DETAIL_ELEMENTS, limits.elements // DETAIL_SHARE)):
            detail = plan.nearest(base)
            _add_together(plan, detail)
            _add_generated(plan, detail)
            _add_beyond(plan, detail)
            _add_switches(plan, detail, switches)
            if seed is not None and declaration.dims:
                _add_random_sizes(plan, seed)
        further = _further_dtypes(declaration)
        _add_dtypes(plan, base, detail, further)
        _add_mixed(plan, detail, all_of_them=all_mixtures)
        add_layouts(plan, detail)
        add_all_strided(plan, detail, _odd_point(plan, detail) or detail, further)
        add_strided_past(plan, switches)
        add_large_strides(plan, detail)
        add_specials(plan, detail)
        _add_options(plan, detail)
    return plan


def _add_declared(plan: PlanBuilder, base: Point) -> None:
    dims = plan.declaration.dims
    for name, sizes in dims.items():
        for size in sizes:
            plan.add_nearest("declared", {**base, name: size}, fixed=name)
    for corner in (smallest_point(dims), largest_point(dims)):
        plan.add("declared", corner)


def _add_repeats(plan: PlanBuilder, base: Point) -> None:
    """The middle and the largest declared case that fits, called a second time."""
    largest = max(plan.cases.values(), key=lambda case: case.elements)
    for point in (base, largest.dims):
        plan.repeat(point)


def _further_dtypes(declaration: Declaration) -> list[Change]:
    """Each further declared dtype; tensors that declare the same dtypes change together."""
    by_dtypes: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in declaration.tensors().items():
        by_dtypes.setdefault(tensor.dtypes, []).append(name)
    several = {dtypes: names for dtypes, names in by_dtypes.items() if len(dtypes) > 1}
    return [
        Change(
            dtype if len(several) == 1 else f"{dtype} {','.join(names)}", dtypes=dict.fromkeys(names, dtype)
        )
        for dtypes, names in several.items()
        for dtype in dtypes[1:]
    ]


def _add_dtypes(plan: PlanBuilder, base: Point, detail: Point, further: Sequence[Change]) -> None:
    """Further dtypes at the middle, both corners and an odd size; also small, huge, with inf and NaN."""
    dims = plan.declaration.dims
    odd = _odd_point(plan, detail)
    for change in further:
        for point in (base, smallest_point(dims), largest_point(dims)):
            plan.add("dtype", point, change)
        if odd is not None:
            plan.add("odd", odd, change)
        add_magnitudes(plan, detail, change)
        for name in [name for name in change.dtypes if name in free_tensors(plan)][:1]:
            add_non_finite(plan, detail, name, change)


def _add_mixed(plan: PlanBuilder, base: Point, *, all_of_them: bool) -> None:
    """Tensors that declare the same dtypes, one of them in another than the rest."""
    by_dtypes: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in plan.declaration.tensors().items():
        if is_floating(tensor.dtypes[0]):
            by_dtypes.setdefault(tensor.dtypes, []).append(name)
    for dtypes, names in ((dtypes, names) for dtypes, names in by_dtypes.items() if len(names) > 1):
        long = max(dtypes, key=lambda dtype: ITEM_BYTES[dtype])
        short = [dtype for dtype in dtypes if ITEM_BYTES[dtype] < ITEM_BYTES[long]]
        for change in _with_long(names, long, short):
            plan.add("mixed", base, change)
        for change in _all_short(names, short) if all_of_them else ():
            plan.add("mixed", base, change)
        if len(short) > 1 and not all_of_them:
            plan.leave_out(f"mixtures of {' and '.join(short)} alone", "--require-mixed-dtypes tries them")


def _with_long(names: Sequence[str], long: DType, short: Sequence[DType]) -> Iterator[Change]:
    """Each tensor in each short dtype among long ones, and the last one long among short ones."""
    for dtype in short:
        for name in names:
            mixture = {**dict.fromkeys(names, long), name: dtype}
            yield Change(f"only {name} {dtype}", dtypes=mixture)
    # Of two tensors, the last one long is the first one short.
    for dtype in short if len(names) > 2 else ():
        mixture = {**dict.fromkeys(names, dtype), names[-1]: long}
        yield Change(f"only {names[-1]} {long} among {dtype}", dtypes=mixture)


def _all_short(names: Sequence[str], short: Sequence[DType]) -> Iterator[Change]:
    """The last tensor in each short dtype among each other one."""
    for dtype, others in permutations(short, 2):
        mixture = {**dict.fromkeys(names, others), names[-1]: dtype}
        yield Change(f"only {names[-1]} {dtype} among {others}", dtypes=mixture)


def _odd_point(plan: PlanBuilder, base: Point) -> Point | None:
    """A planned odd size: of all dimensions where there is one, else of the last."""
    points = [case.dims for case in plan.cases.values() if case.group == "odd"]
    last = next(reversed(base), None)
    in_last = (point for point in points if last is not None and point[last] != base[last])
    return next(in_last, points[0] if points else None)


def _add_together(plan: PlanBuilder, base: Point) -> None:
    """All sizes odd at once, each another one; then all sizes alike, where no declared case has that."""
    if len(base) < 2:
        return
    choices = {name: _odd_sizes(plan, base, name) for name in base}
    odd: Point = {}
    for name, sizes in choices.items():
        odd[name] = next((size for size in sizes if size not in odd.values()), sizes[0])
    plan.add_among("odd", odd, choices)
    halved = [max(base.values()) >> step for step in range(max(base.values()).bit_length() - 1)]
    alike = [dict.fromkeys(base, size) for half in halved for size in (half | 1, half)]
    if alike and not any(
        min(case.dims.values()) > 1 and _is_alike(case.dims) for case in plan.cases.values()
    ):
        plan.add("odd", next((point for point in alike if plan.problem(point) is None), alike[0]))


def _is_alike(point: Point) -> bool:
    return len(set(point.values())) == 1


def _odd_sizes(plan: PlanBuilder, base: Point, name: str) -> list[int]:
    """Odd sizes of one dimension, the next one first, and where requirements allow none an uneven one."""
    least = max(3, base[name] + 1 + base[name] % 2)
    odd = [least, *range(least + 2, least + 2 * _FURTHER_ODD + 1, 2), PRIME]
    uneven = _uneven_size(plan, base, name)
    return odd if uneven is None else [*odd, uneven]


def _add_generated(plan: PlanBuilder, base: Point) -> None:
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


def _add_beyond(plan: PlanBuilder, base: Point) -> None:
    """Each dimension past twice the power of two that holds its largest declared size."""
    if not plan.declaration.inputs:
        plan.leave_out("sizes beyond the declared ones", "the target generates its own inputs")
        return
    for name in base:
        sizes = plan.declaration.dims[name]
        twice = 2 << (max(sizes) - 1).bit_length()
        # Where a requirement asks for multiples, one step of the declared sizes may still be allowed.
        for step in dict.fromkeys((1, _step(sizes))):
            if plan.add_nearest("beyond", {**base, name: twice + step}, fixed=name) is not None:
                break


def _add_switches(plan: PlanBuilder, base: Point, switches: Sequence[Switch]) -> None:
    """Each dimension past a size at which the candidate takes another way, where no case is yet.

    With two other dimensions and more, once with each of them smaller than the one before: a way of its own
    may have mistakes of its own, such as with more rows than columns.
    """
    pairs = ways_taken(switches)
    for size, name in pairs[:MOST_SWITCHES]:
        past = _size_past(plan, base, size, name)
        others = [dim for dim in base if dim != name]
        if past is not None and len(others) > 1:
            falling = {dim: max(3, base[dim] >> place | 1) for place, dim in enumerate(others)}
            plan.add("beyond", {**falling, name: past})
    for size, name in pairs[MOST_SWITCHES:]:
        plan.leave_out(f"{name} past {size}", f"{MOST_SWITCHES} sizes at which the candidate switches are")


def _size_past(plan: PlanBuilder, base: Point, size: int, name: str) -> int | None:
    """The least of the cases' sizes of this dimension past a size; where none is, that of a new case."""
    planned = [case.dims[name] for case in plan.cases.values() if case.dims[name] > size]
    if planned:
        return min(planned)
    for step in dict.fromkeys((1, _step(plan.declaration.dims[name]), *ROUND_STEPS)):
        if plan.add_nearest("beyond", {**base, name: size + step}, fixed=name) is not None:
            return size + step
    return None


def _step(sizes: Sequence[int]) -> int:
    """What all declared sizes are multiples of."""
    return math.gcd(*sizes) or 1


def _add_random_sizes(plan: PlanBuilder, seed: int) -> None:
    """Points at random from the seed, every size log-uniform between 1 and the largest declared one.

    The later ones are multiples as the declared sizes are, for requirements that allow no others.
    """
    random, dims, wanted = Random(f"sizes {seed}"), plan.declaration.dims, RANDOM_POINTS
    for tries in range(_RANDOM_TRIES):
        point: Point = {}
        for name, sizes in dims.items():
            size = int(math.exp(random.uniform(0, math.log(max(sizes) + 1))))
            step = _step(sizes) if 2 * tries >= _RANDOM_TRIES else 1
            point[name] = min(-(-size // step) * step, max(*sizes, 1))
        if name_of(point) not in plan.cases and plan.problem(point) is None:
            plan.add("random_sizes", point)
            wanted -= 1
        if wanted == 0:
            return
    if wanted == RANDOM_POINTS:
        plan.leave_out("random sizes", f"none of {_RANDOM_TRIES:,} tries was both allowed and new")


def _uneven_size(plan: PlanBuilder, base: Point, name: str) -> int | None:
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


def _add_options(plan: PlanBuilder, base: Point) -> None:
    """Each float constant that is not 0 at another value: one that a kernel has written into it shows."""
    for name, spec in plan.declaration.inputs.items():
        if isinstance(spec, ConstantSpec) and isinstance(spec.value, float):
            other = OPTION_FACTOR * spec.value
            if other and math.isfinite(other):
                plan.add("option", base, Change(f"{name} x {OPTION_FACTOR:g}", constants={name: other}))
