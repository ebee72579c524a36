"""Which calls a validation makes: those that the declaration asks for, then conditions that break kernels.

What is declared, empty inputs, second calls, far strides, mixtures of dtypes and other numbers are cases of
their own; sizes, dtypes, layouts, values and configurations meet in a covering design. Whatever is left out
is listed with the reason."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, permutations

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import LARGE_OFFSET, Case, ConstantArgument, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.inputs.sizes import Point, largest_point, middle_point, smallest_point
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.dtype import ITEM_BYTES, DType
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.validate.combined_cases import add_combined, configuration_change
from pytorch_to_triton.validate.factors import (
    constant_changes,
    dtype_changes,
    edge_changes,
    free_tensors,
    is_floating,
    is_ragged,
    layout_changes,
    row_dims,
    size_levels,
    threshold_change,
    value_changes,
    value_combinations,
)
from pytorch_to_triton.validate.host_code import MOST_SWITCHES, Switch
from pytorch_to_triton.validate.plan import NO_CHANGE, CaseSizeLimits, Change, PlanBuilder, name_of

DETAIL_ELEMENTS = 2**20
"""Largest case of those that matter only for their layout, values or odd sizes."""
DETAIL_SHARE = 8
"""They are also smaller than the limit, by this factor: there are dozens of them."""
LONG_ROW = 8192
"""Declared rows above it are hardly held in one block."""
MOST_APART = 2**16
"""Elements of one row, each on a page of its own."""
ROWS_APART = 3
"""From three rows on, a large stride fits 32 bits and the offset does not."""
MOST_COMBINATIONS = 32
"""Of declared values: so many programs no draft has."""
HALVED = 1e-3
"""A float constant of this size or more is tried at half its value, in the ordinary range of its function."""
LARGE_EPS = 0.1
"""Smaller ones, such as an eps or zero, show only where they are large."""
ON_A_GPU = "a size of --at is tried on a GPU alone"
MOST_TELLING = 10
"""So many: seconds under the interpreter."""
LEFT_FOR_LATER = ("large_stride", "mixed", "repeat", "beyond")
"""What may turn out to be a limit, takes another case first, or takes long."""
MOST_ELEMENTS = 2**14
"""A case of more takes longer under the interpreter than all others together; one is taken all the same."""


class CasePlan(Value):
    """What a validation runs, in order, and what it leaves out."""

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]


def build_plan(
    declaration: Declaration,
    limits: CaseSizeLimits,
    *,
    seed: int | None = None,
    switches: Sequence[Switch] = (),
    configurations: int = 1,
    all_mixtures: bool = False,
) -> PlanBuilder:
    """The cases of a validation; none is larger than the limits allow.

    Where no combination of declared sizes fits the limit, halved ones stand in (group `reduced`). Without
    any that can be generated the plan has no cases, and says why. Some of the sizes come from the seed; None:
    none. Mixtures of short dtypes alone, such as bfloat16 with float16, are planned with `all_mixtures`. Each
    side of each of the `switches` is tried, and each of so many `configurations` of an autotuned kernel.
    """
    plan = PlanBuilder(declaration, limits, switches)
    know_conditions(plan, configurations)
    base = plan.add_nearest("declared", middle_point(declaration.dims))
    if base is None:
        return plan
    add_declared(plan, base)
    plan.note_untried()
    add_repeats(plan, base)
    for change in dtype_changes(declaration).values():
        plan.add("dtype", base, change)
    add_values(plan, base)
    with plan.limited_to(min(DETAIL_ELEMENTS, limits.elements // DETAIL_SHARE)):
        plan.base = plan.nearest(base)
        add_plain_sizes(plan)
        add_mixed(plan, all_of_them=all_mixtures)
        add_large_strides(plan)
        add_large_strides_of_long_rows(plan)
        add_options(plan)
        for change in edge_changes(declaration):
            plan.add("special", plan.base, change)
        if declaration.inputs:
            add_combined(plan, size_levels(plan, seed), configurations)
        else:
            plan.leave_out("layouts and special values", "the target generates its own inputs")
    return plan


def plan_of(builder: PlanBuilder) -> CasePlan:
    """What was planned."""
    skipped = {what: why for what, why in builder.skipped.items() if what not in builder.untried}
    untried = (Skip(what=what, why=why, declared=True) for what, why in builder.untried.items())
    others = (Skip(what=what, why=why) for what, why in skipped.items())
    return CasePlan(cases=builder.in_order(), skipped=(*untried, *others))


def know_conditions(plan: PlanBuilder, configurations: int) -> None:
    """Keep what each condition stands for, planned or not."""
    declaration = plan.declaration
    constants = (levels.values() for levels in constant_changes(declaration).values())
    layouts = (changes for levels in layout_changes(declaration).values() for changes in levels.values())
    others = map(configuration_change, range(1, configurations))
    conditions: dict[Group, Iterable[Change]] = {
        "dtype": dtype_changes(declaration).values(),
        "value": chain.from_iterable(constants),
        "layout": chain.from_iterable(layouts),
        "special": chain(*value_changes(declaration).values(), others),
    }
    for group, changes in conditions.items():
        for change in changes:
            plan.know(group, change)
    for name, spec in declaration.tensors().items():
        if is_floating(spec.dtypes[0]) and spec.low is not None:
            why = f"its range is declared: {spec.low}..{spec.high}, where only the ends are special"
            plan.leave_out(f"special values of {name}", why)


def add_declared(plan: PlanBuilder, base: Point) -> None:
    dims = plan.declaration.dims
    for name, sizes in dims.items():
        for size in sizes:
            plan.add_nearest("declared", {**base, name: size}, fixed=name)
    for corner in (smallest_point(dims), largest_point(dims)):
        plan.add("declared", corner)


def add_values(plan: PlanBuilder, base: Point) -> None:
    """All declared values of constants with each other, and each at the corners of the declared sizes."""
    declaration = plan.declaration
    for change in islice(value_combinations(declaration), MOST_COMBINATIONS):
        plan.add("value", base, change)
    for changes in constant_changes(declaration).values():
        for change in changes.values():
            if change.label:
                plan.add("value", base, change)
                plan.add("value", smallest_point(declaration.dims), change)
                plan.add("value", largest_point(declaration.dims), change)


def add_points(plan: PlanBuilder, points: Sequence[Point]) -> None:
    """The sizes that a kernel is made for, each once, as far as a device's memory allows."""
    with plan.limited_to(plan.limits.named_elements):
        for point in points:
            name = name_of(point)
            if not plan.limits.elements:
                plan.leave_out(name, ON_A_GPU)
            elif not plan.add("declared", point):
                plan.note_too_large(name, plan.skipped[name])


def add_repeats(plan: PlanBuilder, base: Point) -> None:
    """The middle case called again, with other values and with ones that look the same at a glance."""
    plan.repeat(base, NO_CHANGE)
    if free := free_tensors(plan.declaration):
        alike = Change("same corners", fills=dict.fromkeys(free, "same_corners"))
        plan.add("special", base, alike)
        plan.repeat(base, alike)


def add_plain_sizes(plan: PlanBuilder) -> None:
    """No elements along each dim; all sizes odd, and all alike; many programs past a switch."""
    dims, base = plan.declaration.dims, plan.base
    for name in base:
        plan.add_nearest("empty", {**base, name: 0}, fixed=name)
    sizes = enumerate(base.items())
    plan.add_nearest("odd", {name: size + 1 + size % 2 + 2 * place for place, (name, size) in sizes})
    if len(base) > 1 and not any(is_square(case.dims) for case in plan.cases.values()):
        alike = [dict.fromkeys(base, size) for size in halves(max(base.values()))]
        fitting = (point for point in alike if plan.problem(point) is None)
        plan.add("odd", next(fitting, alike[0]))
    rows = row_dims(plan.declaration)
    of_programs = [(size, name) for size, name in plan.switches if name not in rows]
    for size, name in of_programs[:MOST_SWITCHES]:
        if size >= max(dims[name]):
            plan.add_nearest("beyond", {**base, name: size + 1}, fixed=name)


def add_past_groups(plan: PlanBuilder, groups: Sequence[Switch]) -> None:
    """A size past each: programs in groups go wrong by what they compute where, whatever the values are."""
    small = smallest_point(plan.declaration.dims)
    for size, name in groups[:MOST_SWITCHES]:
        plan.add_nearest("beyond", {**small, name: size + 1}, fixed=name)


def add_multiples(plan: PlanBuilder, multiples: Sequence[Switch]) -> None:
    """Each size of whole tiles: what takes a way of its own there may yet need an even count of them."""
    small = smallest_point(plan.declaration.dims)
    for size, name in multiples[:MOST_SWITCHES]:
        group: Group = "odd" if size <= max(plan.declaration.dims[name]) else "beyond"
        plan.add_nearest(group, {**small, name: size}, fixed=name)


def add_thresholds(plan: PlanBuilder, written: Sequence[float]) -> None:
    """The numbers that calls and the reference's source compare with, among the values of the middle case."""
    change = threshold_change(plan.declaration, written)
    if plan.cases and change.label:
        plan.add("special", plan.base, change)


def add_mixed(plan: PlanBuilder, *, all_of_them: bool) -> None:
    """Tensors that declare the same dtypes, one of them in another than the rest."""
    by_dtypes: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in plan.declaration.tensors().items():
        if is_floating(tensor.dtypes[0]):
            by_dtypes.setdefault(tensor.dtypes, []).append(name)
    for dtypes, names in ((dtypes, names) for dtypes, names in by_dtypes.items() if len(names) > 1):
        long = max(dtypes, key=lambda dtype: ITEM_BYTES[dtype])
        short = [dtype for dtype in dtypes if ITEM_BYTES[dtype] < ITEM_BYTES[long]]
        for change in (*with_long(names, long, short), *(all_short(names, short) if all_of_them else ())):
            plan.add("mixed", plan.base, change)
        if len(short) > 1 and not all_of_them:
            plan.leave_out(f"mixtures of {' and '.join(short)} alone", "--require-mixed-dtypes tries them")


def with_long(names: Sequence[str], long: DType, short: Sequence[DType]) -> Iterator[Change]:
    """Each tensor in each short dtype among long ones, and the last one long among short ones."""
    for dtype in short:
        for name in names:
            mixture = {**dict.fromkeys(names, long), name: dtype}
            yield Change(f"only {name} {dtype}", dtypes=mixture)
    # Of two tensors, the last one long is the first one short.
    for dtype in short if len(names) > 2 else ():
        mixture = {**dict.fromkeys(names, dtype), names[-1]: long}
        yield Change(f"only {names[-1]} {long} among {dtype}", dtypes=mixture)


def all_short(names: Sequence[str], short: Sequence[DType]) -> Iterator[Change]:
    """The last tensor in each short dtype among each other one."""
    for dtype, others in permutations(short, 2):
        mixture = {**dict.fromkeys(names, others), names[-1]: dtype}
        yield Change(f"only {names[-1]} {dtype} among {others}", dtypes=mixture)


def add_large_strides(plan: PlanBuilder) -> None:
    """Each tensor at offsets past 2^31 elements, one at a time, at the smallest sizes that leave it rows."""
    dims, base = plan.declaration.dims, plan.base
    few = {
        name: min((size for size in sizes if size >= ROWS_APART), default=base[name])
        for name, sizes in dims.items()
    }
    point = few if plan.problem(few) is None else base
    for name in plan.declaration.tensors():
        declared = largest_elements(plan.declaration, name) > LARGE_OFFSET
        change = Change(f"{name} rows far apart", layouts={name: "large_stride"}, declared=declared)
        plan.know("large_stride", change)
        if why := plan.problem(point, change):
            plan.leave_out(f"offsets beyond 2^31 elements in {name}", why)
        else:
            plan.add("large_stride", point, change)


def add_large_strides_of_long_rows(plan: PlanBuilder) -> None:
    """The largest tensor's rows, then its columns, at such offsets where rows are long.

    Kernels of long rows compute offsets of their own.
    """
    declaration = plan.declaration
    for name in sorted(row_dims(declaration)) if len(declaration.dims) > 1 else ():
        declared = (size for size in declaration.dims[name] if size > LONG_ROW)
        lengths = {*declared, *(size + 1 for size in plan.switches_of(name))}
        for others in (ROWS_APART, 1):
            fitting = sorted(n for n in lengths if others > 1 or n <= MOST_APART)
            points = ({**dict.fromkeys(declaration.dims, others), name: n} for n in fitting[::-1])
            point = next((point for point in points if plan.problem(point) is None), None)
            if point is None:
                continue
            elements = {held: math.prod(declaration.shape_of(held, point)) for held in declaration.tensors()}
            largest = max(elements, key=lambda held: elements[held])
            change = Change(f"{largest} far apart", layouts={largest: "large_stride"})
            if plan.problem(point, change) is None:
                plan.add("large_stride", point, change)


def largest_elements(declaration: Declaration, name: str) -> int:
    """How many elements the tensor has at the largest of its declared sizes, however large."""
    dims, base = declaration.dims, middle_point(declaration.dims)
    singles = ({**base, dim: size} for dim, sizes in dims.items() for size in sizes)
    elements = [0]
    for point in (base, *singles, smallest_point(dims), largest_point(dims)):
        if not declaration.violated(point):
            with suppress(BadDeclaration):
                elements.append(math.prod(declaration.shape_of(name, point)))
    return max(elements)


def add_options(plan: PlanBuilder) -> None:
    """Each float constant at another value: one that a kernel has written into it shows. Of one that has
    several declared values, these are all."""
    for name, spec in plan.declaration.inputs.items():
        if isinstance(spec, ConstantSpec) and isinstance(spec.value, float) and not spec.others:
            other = spec.value / 2 if abs(spec.value) >= HALVED else math.copysign(LARGE_EPS, spec.value)
            plan.add("option", plan.base, Change(f"{name} {other:g}", constants={name: other}))


def halves(size: int) -> list[int]:
    """Half of it again and again, down to 2, each made odd first."""
    halved = [size >> step for step in range(max(size.bit_length() - 1, 1))]
    return [near for half in halved for near in (half | 1, half)]


def is_square(point: Point) -> bool:
    """Whether all sizes are alike, and not one."""
    return len(set(point.values())) == 1 and min(point.values()) > 1


def telling_cases(cases: Sequence[Case]) -> list[Case]:
    """The first case, then those with the most conditions that no earlier one has, large ones first."""
    eligible = [case for case in cases if not set(LEFT_FOR_LATER) & set(case.reasons)]
    small = [case for case in eligible if case.elements <= MOST_ELEMENTS] or eligible[:1]
    telling, rest = small[:1], small[1:]
    seen = set[str]().union(*map(conditions_of, telling))
    while rest and len(telling) < MOST_TELLING:
        best = max(rest, key=lambda case: (len(conditions_of(case) - seen), case.elements))
        telling.append(best)
        rest.remove(best)
        seen |= conditions_of(best)
    return telling


def conditions_of(case: Case) -> set[str]:
    """What is unusual about it: its groups, the dtypes, layouts and values of its tensors, its constants and
    its sizes.

    Sizes within a factor of 8 of each other are alike, where both fill blocks or neither does; a
    configuration is tried with each.
    """
    tensors = tensors_in(case.arguments)
    of_tensors = {text for tensor in tensors for text in (tensor.dtype, tensor.layout, tensor.fill)}
    sizes = {
        f"{dim} {size.bit_length() // 3} {is_ragged(size)} in {case.configuration}"
        for dim, size in case.dims.items()
    }
    values = {f"{c.name} {c.value!r}" for c in case.arguments if isinstance(c, ConstantArgument)}
    all_alike = {"square"} if len(case.dims) > 1 and len(set(case.dims.values())) == 1 else set[str]()
    return {*case.reasons, *of_tensors, *sizes, *values, *all_alike}
