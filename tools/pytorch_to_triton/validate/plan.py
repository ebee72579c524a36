"""A plan of cases while it is made: what runs, what is left out and why, and what each label means."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import reduce
from itertools import islice
from typing import get_args

from pytorch_to_triton.errors import BadDeclaration, BadInput
from pytorch_to_triton.inputs.case import (
    Argument,
    Case,
    ConstantArgument,
    Fill,
    Layout,
    TensorArgument,
    tensors_in,
)
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point, Sizes, nearby
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.dtype import DType, Scalar
from pytorch_to_triton.validate.host_code import Switch

AGAIN = "called again"
"""The label of a repeat."""
SEPARATOR = ", "
"""Between the conditions in a label."""
_NEIGHBOURS_TRIED = 2_000
_HEADROOM = 4
"""A reduced middle point stays this far below the limit, so that one dimension can still grow."""
_GIB = 2**30
_NAMES_SHOWN = 3
_SIMILAR = 0.4


@dataclass(frozen=True)
class Change:
    """How a case differs from random, contiguous tensors in their first dtypes, and from declared constants.

    Dtypes, layouts, fills and what is among the values by tensor name, constants by argument name.
    """

    label: str = ""
    dtypes: Mapping[str, DType] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    fills: Mapping[str, Fill] = field(default_factory=dict)
    among: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    constants: Mapping[str, Scalar] = field(default_factory=dict)
    configuration: int = 0
    declared: bool = False
    """As in Case: the declaration reaches what the change tries."""

    def joined(self, other: "Change") -> "Change":
        """Both at once."""
        return Change(
            label=SEPARATOR.join(filter(None, (self.label, other.label))),
            dtypes={**self.dtypes, **other.dtypes},
            layouts={**self.layouts, **other.layouts},
            fills={**self.fills, **other.fills},
            among={**self.among, **other.among},
            constants={**self.constants, **other.constants},
            configuration=self.configuration or other.configuration,
            declared=self.declared or other.declared,
        )

    def applied(self, argument: Argument) -> Argument:
        """The argument with this change."""
        if isinstance(argument, TensorArgument):
            changed = {"layout": self.layouts, "fill": self.fills, "among": self.among}
            name = argument.name
            return argument.model_copy(update={what: of[name] for what, of in changed.items() if name in of})
        if argument.name in self.constants:
            return ConstantArgument(name=argument.name, value=self.constants[argument.name])
        return argument


NO_CHANGE = Change()


@dataclass(frozen=True)
class CaseSizeLimits:
    """The largest case: elements over all its tensors, and the bytes that strides may span."""

    elements: int
    span_bytes: int
    own_elements: int = 0
    """Of the call that a file with get_inputs() makes: it may be larger than all others."""
    named_elements: int = 0
    """The same of sizes that are named for a device; 0 where there is none."""


class PlanBuilder:
    """Cases and skips by name, as they are found."""

    def __init__(self, declaration: Declaration, limits: CaseSizeLimits, switches: Sequence[Switch]) -> None:
        self.declaration = declaration
        self.limits = limits
        self.switches = switches
        self.base: Point = {}
        """Sizes of which only what a case is about departs."""
        self.cases: dict[str, Case] = {}
        self.skipped: dict[str, str] = {}
        self.labels: dict[str, tuple[Group, Change]] = {}
        """What each condition stands for, at whatever sizes, and the group of a case that has no other."""
        self.untried: dict[str, str] = {}
        """Declared sizes, `N=1000000`, that no case has because they are too large, with the reason."""
        self._repeats: dict[str, Case] = {}
        self._problems: defaultdict[int, dict[tuple[int, ...], str | None]] = defaultdict(dict)
        """Why sizes cannot be run, by the limit and the sizes: thousands are asked about."""

    def switches_of(self, dim: str) -> list[int]:
        """The sizes of a dim past which the candidate takes another way."""
        return [size for size, name in self.switches if name == dim]

    def add(self, group: Group, point: Point, change: Change = NO_CHANGE) -> bool:
        """Whether the case is in the plan now; when it is not, the reason is."""
        self.know(group, change)
        name = name_of(point, change.label)
        if name in self.cases:
            return True
        if why := self.problem(point, change):
            self.skipped[name] = why
            return False
        self.cases[name] = self.case((group,), point, change)
        return True

    def add_nearest(self, group: Group, point: Point, fixed: str | None = None) -> Point | None:
        """Adds this point, else the nearest one that can be run; the dimension `fixed` keeps its size.

        Nearest: other declared sizes above 1, else smaller ones, else any declared. Declared cases at smaller
        ones are of group `reduced`.
        """
        if self.add(group, point):
            return point
        others = {name: sizes for name, sizes in self.declaration.dims.items() if name != fixed}
        above_one = {name: [size for size in sizes if size > 1] for name, sizes in others.items()}
        near = self._fitting(point, above_one) or self._reduced(point, others) or self._fitting(point, others)
        if near is None:
            return None
        declared = all(near[name] in sizes for name, sizes in others.items())
        self.add("reduced" if group == "declared" and not declared else group, near)
        return near

    @contextmanager
    def limited_to(self, elements: int) -> Iterator[None]:
        """Inside, no case is larger than so many elements."""
        before = self.limits
        self.limits = replace(before, elements=elements)
        try:
            yield
        finally:
            self.limits = before

    def nearest(self, point: Point) -> Point:
        """This point where it can be run, else a smaller one that can; itself where there is none."""
        if self.problem(point) is None:
            return point
        return self._reduced(point, self.declaration.dims) or point

    def repeat(self, point: Point, change: Change) -> None:
        """Adds a second call of the planned case, right after it; none without tensors."""
        before, again = name_of(point, change.label), Change(AGAIN)
        if before in self.cases and tensors_in(self.cases[before].arguments):
            self.know("repeat", again)
            self._repeats[before] = self.case(("repeat",), point, change.joined(again))

    def know(self, group: Group, change: Change) -> None:
        """Keeps what the label stands for."""
        if change.label:
            self.labels.setdefault(change.label, (group, change))

    def leave_out(self, what: str, why: str) -> None:
        self.skipped[what] = why

    def combined(self, point: Point, parts: Sequence[str]) -> Case | None:
        """The case of these sizes and conditions, in the plan or not; None where it cannot be run.

        Raises KeyError for a condition that the plan does not know.
        """
        change = self.change_of(parts)
        return None if self.problem(point, change) else self.case(self.groups_of(point, parts), point, change)

    def change_of(self, parts: Iterable[str]) -> Change:
        """What the parts of a label stand for together."""
        return reduce(Change.joined, (self.labels[part][1] for part in parts), NO_CHANGE)

    def groups_of(self, point: Point, parts: Iterable[str]) -> tuple[Group, ...]:
        """What is not declared about a case, each once."""
        return tuple(dict.fromkeys((*self._unusual(point), *(self.labels[part][0] for part in parts))))

    def _unusual(self, point: Point) -> Iterator[Group]:
        """What is unusual about sizes that are neither declared nor the base's: the first that applies."""
        declared = self.declaration.dims
        others = {n: size for n, size in point.items() if size not in (*declared[n], self.base.get(n))}
        if 0 in others.values():
            yield "empty"
        elif any(size > max(declared[name]) for name, size in others.items()):
            yield "beyond"
        elif 1 in others.values():
            yield "one"
        elif others:
            yield "odd"

    def case(self, conditions: tuple[Group, ...], point: Point, change: Change = NO_CHANGE) -> Case:
        """The case, in the plan or not. Raises BadDeclaration where a tensor cannot be generated."""
        group = "combined" if len(conditions) > 1 else (*conditions, "declared")[0]
        before = change.label.removesuffix(AGAIN).removesuffix(SEPARATOR)
        return Case(
            name=name_of(point, change.label),
            group=group,
            conditions=conditions,
            dims=point,
            arguments=self._arguments(point, change),
            label=change.label,
            configuration=change.configuration,
            again_after=name_of(point, before) if "repeat" in conditions else None,
            declared=change.declared,
        )

    def problem(self, point: Point, change: Change = NO_CHANGE) -> str | None:
        """Why these sizes cannot be run; None when they can."""
        known, sizes = self._problems[self.limits.elements], tuple(point.values())
        if sizes not in known:
            known[sizes] = self._size_problem(point)
        if known[sizes] or "large_stride" not in change.layouts.values():
            return known[sizes]
        return self._span_problem(tensors_in(self._arguments(point, change)))

    def first_that_runs(
        self, dims: Collection[str], points: Iterable[tuple[int, ...]], change: Change
    ) -> Point | None:
        """The first of the points, sizes in the order of `dims`, that can be run; None where none can."""
        known = self._problems[self.limits.elements]
        untold = (dict(zip(dims, sizes, strict=True)) for sizes in points if known.get(sizes) is None)
        return next((point for point in untold if self.problem(point, change) is None), None)

    def fits(self, point: Point) -> bool:
        """Whether the tensors are within the limit at these sizes, or have none."""
        with suppress(BadDeclaration):
            return self._elements(point) <= self.limits.elements
        return False

    def _size_problem(self, point: Point) -> str | None:
        if broken := self.declaration.violated(point):
            return f"requires {broken}"
        try:
            elements = self.declaration.elements_at(point)
            if elements > self.limits.elements:
                return f"{elements:,} elements are over this run's limit of {self.limits.elements:,}"
            self.declaration.arguments(point)
        except BadDeclaration as error:
            return error.message.partition("\n")[0]
        return None

    def note_untried(self) -> None:
        """Keep the declared sizes that requirements allow and that no case has, as they are too large."""
        dims = self.declaration.dims
        tried = {pair for case in self.cases.values() for pair in case.dims.items()}
        for name, size in ((name, size) for name, sizes in dims.items() for size in sizes):
            smallest = {other: min(sizes) for other, sizes in dims.items()} | {name: size}
            others = {other: sizes for other, sizes in dims.items() if other != name}
            allowed = self._allowed(smallest, others)
            if (name, size) not in tried and allowed is not None:
                self.note_too_large(f"{name}={size}", self.problem(allowed) or "no case of this run has it")

    def note_too_large(self, what: str, why: str) -> None:
        """Keep sizes that the caller named, and no case has."""
        self.untried[what] = f"too large for this run: {why}"

    def in_order(self) -> tuple[Case, ...]:
        """The cases, each with its repeat right after it."""
        pairs = ((case, self._repeats.get(name)) for name, case in self.cases.items())
        return tuple(case for pair in pairs for case in pair if case is not None)

    def _arguments(self, point: Point, change: Change) -> tuple[Argument, ...]:
        return tuple(map(change.applied, self.declaration.arguments(point, change.dtypes)))

    def _elements(self, point: Point) -> int:
        return sum(tensor.elements for tensor in tensors_in(self.declaration.arguments(point)))

    def _span_problem(self, tensors: Collection[TensorArgument]) -> str | None:
        strided = [tensor for tensor in tensors if tensor.layout == "large_stride"]
        if any(tensor.elements == 0 or max(tensor.shape, default=1) < 2 for tensor in strided):
            return "it has no two rows to move apart"
        span, limit = sum(tensor.span_bytes for tensor in tensors), self.limits.span_bytes
        if span > limit:
            return f"{span / _GIB:.1f} GiB are over this run's limit of {limit / _GIB:.1f} GiB"
        return None

    def _near(self, point: Point, choices: Sizes, is_good: Callable[[Point], bool]) -> Point | None:
        return next(filter(is_good, islice(nearby(point, choices), _NEIGHBOURS_TRIED)), None)

    def _fitting(self, point: Point, choices: Sizes) -> Point | None:
        return self._near(point, choices, lambda candidate: self.problem(candidate) is None)

    def _allowed(self, point: Point, choices: Sizes) -> Point | None:
        return self._near(point, choices, lambda candidate: not self.declaration.violated(candidate))

    def _reduced(self, point: Point, choices: Sizes) -> Point | None:
        """The nearest allowed point, its largest choices halved until it fits; None where it cannot."""
        allowed = self._allowed(point, choices)
        if allowed is None:
            return None
        everything_shrinks = choices.keys() == point.keys()
        limits = [self.limits.elements // _HEADROOM] * everything_shrinks + [self.limits.elements]
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


def parts_of(label: str) -> list[str]:
    """The conditions that a label names: `bfloat16, x transposed, negative`."""
    return label.split(SEPARATOR) if label else []


def names_values(name: str) -> bool:
    """Whether a case's name says that its values are special: `N=3 bfloat16, negative`."""
    last = parts_of(name.rpartition("=")[2])
    words = " ".join(last).split(" ", 1)[-1]
    return any(f" {fill.replace('_', ' ')} " in f" {words} " for fill in get_args(Fill))


def name_of(point: Point, label: str = "") -> str:
    """`M=7 N=64 x transposed`; without sizes the label alone, and of plain calls `base`."""
    sizes = point_name(point) or ("base" if label in ("", AGAIN) else "")
    return " ".join(part for part in (sizes, label) if part)


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
