"""Which calls a validation makes: the declared sizes, then sizes, layouts and values that break kernels.

Dimensions vary one at a time from a middle point, never as a product; the all-smallest and all-largest
corners join them. Whatever is left out is listed with the reason.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.schema.case import (
    Argument,
    Case,
    DType,
    Fill,
    Group,
    Layout,
    ListArgument,
    TensorArgument,
    tensors_in,
)
from pytorch_to_triton.schema.declaration import Declaration
from pytorch_to_triton.schema.expression import names_in, point_name
from pytorch_to_triton.schema.input_spec import TensorSpec
from pytorch_to_triton.schema.sizes import Point, Sizes, largest_point, middle_point, nearby, smallest_point
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Skip

PRIME = 13
"""An odd size below most blocks."""
_NEIGHBOURS_TRIED = 2_000
_STEPS_TRIED = 1_024
_HEADROOM = 4
"""A reduced middle point stays this far below the limit, so that one dimension can still grow."""
_LAYOUTS: tuple[Layout, ...] = ("transposed", "expanded", "sliced", "offset")
_SPECIALS: tuple[Fill, ...] = ("zeros", "ones", "equal_rows", "large", "small", "negative")
_NON_FINITE: tuple[Fill, ...] = ("inf", "nan")
_TENSORS_NON_FINITE = 2
"""Tensors that are given inf and NaN, one at a time: each further one costs two cases and finds little."""


class CasePlan(Value):
    """What a validation runs, in order, and what it leaves out."""

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]


def plan_cases(declaration: Declaration, *, limit_elements: int) -> CasePlan:
    """The cases of a validation; none holds more than `limit_elements` elements over all its tensors.

    Where no combination of declared sizes fits the limit, halved ones stand in (group `reduced`). Without
    any that can be drawn the plan has no cases, and says why.
    """
    plan = _Plan(declaration, limit_elements)
    base = plan.add_nearest("declared", middle_point(declaration.dims))
    if base is not None:
        _add_declared(plan, base)
        _add_dtypes(plan, base)
        _add_generated(plan, base)
        _add_layouts(plan, base)
        _add_specials(plan, base)
    return plan.finished()


@dataclass(frozen=True)
class _Change:
    """How a case differs from random, contiguous tensors in their first dtypes; all by tensor name."""

    label: str = ""
    dtypes: Mapping[str, DType] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    fills: Mapping[str, Fill] = field(default_factory=dict)

    def applied(self, tensor: TensorArgument) -> TensorArgument:
        changes: dict[str, Any] = {}
        if tensor.name in self.layouts:
            changes["layout"] = self.layouts[tensor.name]
        if tensor.name in self.fills:
            changes["fill"] = self.fills[tensor.name]
        return tensor.model_copy(update=changes)


_NO_CHANGE = _Change()


class _Plan:
    """Cases and skips by name, as they are found."""

    def __init__(self, declaration: Declaration, limit_elements: int) -> None:
        self.declaration = declaration
        self.limit_elements = limit_elements
        self.cases: dict[str, Case] = {}
        self.skipped: dict[str, str] = {}

    def add(self, group: Group, point: Point, change: _Change = _NO_CHANGE) -> bool:
        """Whether the case is in the plan now; when it is not, the reason is."""
        name = " ".join(part for part in (point_name(point), change.label) if part) or "base"
        if name in self.cases:
            return True
        if why := self.problem(point, change):
            self.skipped[name] = why
            return False
        arguments = tuple(_changed(argument, change) for argument in self._arguments(point, change))
        self.cases[name] = Case(name=name, group=group, dims=point, arguments=arguments)
        return True

    def add_nearest(self, group: Group, point: Point, fixed: str | None = None) -> Point | None:
        """Adds this point, else the nearest one that can be run; the dimension `fixed` keeps its size.

        Nearest: other declared sizes above 1, else smaller ones (group `reduced`), else any declared.
        """
        if self.add(group, point):
            return point
        others = {name: sizes for name, sizes in self.declaration.dims.items() if name != fixed}
        above_one = {name: [size for size in sizes if size > 1] for name, sizes in others.items()}
        near = self._fitting(point, above_one) or self._reduced(point, others) or self._fitting(point, others)
        if near is None:
            return None
        declared = all(near[name] in sizes for name, sizes in others.items())
        self.add(group if declared else "reduced", near)
        return near

    def problem(self, point: Point, change: _Change = _NO_CHANGE) -> str | None:
        """Why these sizes cannot be run; None when they can."""
        if broken := self.declaration.violated(point):
            return f"requires {broken}"
        try:
            elements = self._elements(point, change)
        except BadDeclaration as error:
            return error.message.partition("\n")[0]
        if elements > self.limit_elements:
            return f"{elements:,} elements are over this run's limit of {self.limit_elements:,}"
        return None

    def leave_out(self, what: str, why: str) -> None:
        self.skipped[what] = why

    def finished(self) -> CasePlan:
        skipped = tuple(Skip(what=what, why=why) for what, why in self.skipped.items())
        return CasePlan(cases=tuple(self.cases.values()), skipped=skipped)

    def _arguments(self, point: Point, change: _Change) -> tuple[Argument, ...]:
        return self.declaration.arguments(point, change.dtypes)

    def _elements(self, point: Point, change: _Change = _NO_CHANGE) -> int:
        return sum(tensor.elements for tensor in tensors_in(self._arguments(point, change)))

    def _fitting(self, point: Point, choices: Sizes) -> Point | None:
        near = islice(nearby(point, choices), _NEIGHBOURS_TRIED)
        return next((candidate for candidate in near if self.problem(candidate) is None), None)

    def _reduced(self, point: Point, choices: Sizes) -> Point | None:
        """The nearest allowed point, its largest choices halved until it fits; None where it cannot."""
        near = islice(nearby(point, choices), _NEIGHBOURS_TRIED)
        allowed = next((candidate for candidate in near if not self.declaration.violated(candidate)), None)
        everything_shrinks = choices.keys() == point.keys()
        limits = [self.limit_elements // _HEADROOM] * everything_shrinks + [self.limit_elements]
        if allowed is None:
            return None
        halved = (self._halved(allowed, choices.keys(), limit) for limit in limits)
        return next((smaller for smaller in halved if smaller is not None), None)

    def _halved(self, point: Point, names: Collection[str], limit: int) -> Point | None:
        try:
            while self._elements(point) > limit:
                largest_first = sorted(names, key=lambda name: -point[name])
                halved = ({**point, name: point[name] // 2} for name in largest_first if point[name] > 3)
                point = next(smaller for smaller in halved if not self.declaration.violated(smaller))
        except (StopIteration, BadDeclaration):
            return None
        return point


def _changed(argument: Argument, change: _Change) -> Argument:
    if isinstance(argument, TensorArgument):
        return change.applied(argument)
    if isinstance(argument, ListArgument):
        return argument.model_copy(update={"items": tuple(map(change.applied, argument.items))})
    return argument


def _add_declared(plan: _Plan, base: Point) -> None:
    dims = plan.declaration.dims
    for name, sizes in dims.items():
        for size in sizes:
            plan.add_nearest("declared", {**base, name: size}, fixed=name)
    for corner in (smallest_point(dims), largest_point(dims)):
        plan.add("declared", corner)


def _add_dtypes(plan: _Plan, base: Point) -> None:
    """Each further claimed dtype; tensors that claim the same dtypes change together."""
    dims = plan.declaration.dims
    claims: dict[tuple[DType, ...], list[str]] = {}
    for name, tensor in plan.declaration.tensors().items():
        claims.setdefault(tensor.dtypes, []).append(name)
    several = {dtypes: names for dtypes, names in claims.items() if len(dtypes) > 1}
    for dtypes, names in several.items():
        for dtype in dtypes[1:]:
            label = dtype if len(several) == 1 else f"{dtype} {','.join(names)}"
            change = _Change(label, dtypes=dict.fromkeys(names, dtype))
            for point in (base, smallest_point(dims), largest_point(dims)):
                plan.add("dtype", point, change)


def _add_generated(plan: _Plan, base: Point) -> None:
    """Odd, one-element and empty sizes, one dimension at a time."""
    for name, size in base.items():
        largest = max(plan.declaration.dims[name])
        for odd in (size + 1 + size % 2, PRIME, largest + 1 + largest % 2):
            plan.add_nearest("odd", {**base, name: odd}, fixed=name)
        if (allowed := _uneven_size(plan, base, name)) is not None:
            plan.add("odd", {**base, name: allowed})
        plan.add_nearest("one", {**base, name: 1}, fixed=name)
        plan.add_nearest("empty", {**base, name: 0}, fixed=name)


def _uneven_size(plan: _Plan, base: Point, name: str) -> int | None:
    """The next size that is no power of two, where requirements such as `N % 16 == 0` allow no odd one."""
    if not any(name in names_in(text) for text in plan.declaration.requires):
        return None
    candidates = range(base[name] + 1, base[name] + _STEPS_TRIED + 1)
    uneven = (size for size in candidates if size.bit_count() > 1)
    return next((size for size in uneven if plan.problem({**base, name: size}) is None), None)


def _add_layouts(plan: _Plan, base: Point) -> None:
    """Each tensor of one dimension or more in each memory layout; a vector has no transpose."""
    tensors = plan.declaration.tensors()
    if not plan.declaration.inputs:
        plan.leave_out("layouts and special values", "the target draws its own inputs")
    for name, tensor in tensors.items():
        for layout in _LAYOUTS[2 * (len(tensor.shape) < 2) :] if tensor.shape else ():
            plan.add("layout", base, _Change(f"{name} {layout}", layouts={name: layout}))


def _add_specials(plan: _Plan, base: Point) -> None:
    """Special values: in all floating tensors at once, but inf and NaN in one tensor at a time."""
    floating = {name: spec for name, spec in plan.declaration.tensors().items() if _is_floating(spec)}
    free = [name for name, spec in floating.items() if spec.low is None]
    for name, spec in floating.items():
        if spec.low is not None:
            plan.leave_out(f"special values of {name}", f"its range is declared: {spec.low}..{spec.high}")
    if free:
        for fill in _SPECIALS:
            plan.add("special", base, _Change(fill.replace("_", " "), fills=dict.fromkeys(free, fill)))
    for name in free[:_TENSORS_NON_FINITE]:
        for fill in _NON_FINITE:
            _add_non_finite(plan, base, name, fill)
    for name in free[_TENSORS_NON_FINITE:]:
        plan.leave_out(
            f"inf and nan in {name}", f"only {_TENSORS_NON_FINITE} tensors of a target are given them"
        )


def _add_non_finite(plan: _Plan, base: Point, name: str, fill: Fill) -> None:
    label = f"{fill} in {name}"
    if fill == "inf" and plan.declaration.tensors()[name].dtypes[0] == "float8_e4m3fn":
        plan.leave_out(label, "float8_e4m3fn has no infinity")
    else:
        plan.add("special", base, _Change(label, fills={name: fill}))


def _is_floating(spec: TensorSpec) -> bool:
    return spec.dtypes[0].startswith(("float", "bfloat"))
