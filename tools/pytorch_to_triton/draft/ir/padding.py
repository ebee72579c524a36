"""What a value is in lanes past the end: by evaluating it a few times, all that is unknown being random.

This one question decides the `other` of loads, whether a `tl.where` is needed before a reduction, and whether
what was computed from a padded tensor is still padded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from pytorch_to_triton.draft.ir.functions import FUNCTIONS
from pytorch_to_triton.draft.ir.indices import extent, size_of
from pytorch_to_triton.draft.ir.monoids import MAX, MIN, PEAK, SUM
from pytorch_to_triton.draft.ir.rewriting import decided, rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import Size, equal, names, value
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Cluster,
    Const,
    Extent,
    Get,
    Index,
    Load,
    Map,
    Number,
    Reduce,
    Scan,
    Value,
    axes_in_order,
    axes_of,
    children,
    kind_of,
    op,
    walk,
)
from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.expression import names_in, value_of

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_nan"})
FAR = 10**12
"""More than any size that is made up here, after it is divided by three of them."""

LARGE = 1e4
"""Its exponential is infinite, a product of many no number that is."""


@dataclass(frozen=True)
class Setting:
    """What is unknown in one evaluation."""

    signs: tuple[int, ...] = (-1, 1)
    """Of unknown numbers: a maximum of 0 and something unknown may be 0 in none but a few."""
    other_axes: Literal["anywhere", "at 0", "at 1", "far"] = "anywhere"
    """Where the axes are that do not end. At 0 or 1: what is loaded past the end as that is equal to
    such an index.
    Far: an index past the end is smaller than theirs, and what is masked up to them is not masked there."""
    is_infinite: bool = False
    """Zero times what is loaded may be NaN."""
    scale: float = 1.0
    """Of unknown numbers: the exponential of what is larger than a row of large negative numbers is infinite,
    and zero times that NaN."""
    is_nan: bool = False
    """Unknown numbers are NaN where they are compared: no comparison but that they differ holds of NaN."""
    is_empty: bool = False
    """The axes that end have no element: what is reduced over them is the identity."""
    dims_are_one: bool = False
    """(N - 1) // 2 is 0 then, and equal to what is loaded past the end as that."""
    all_equal: bool = False
    """Unknown numbers are equal to all others: a row's maximum to a number past the row's end, also to one
    that an unknown condition chose."""


SETTINGS = (
    Setting(signs=(1,), dims_are_one=True),
    Setting(signs=(-1,), dims_are_one=True),
    Setting(is_nan=True),
    Setting(other_axes="at 0"),
    Setting(other_axes="at 1"),
    Setting(other_axes="far"),
    Setting(signs=(1,)),
    Setting(signs=(-1,)),
    Setting(is_infinite=True),
    Setting(signs=(1,), scale=LARGE),
    Setting(signs=(-1,), scale=LARGE),
    *(Setting(all_equal=True),) * 4,
    Setting(all_equal=True, other_axes="at 0"),
    Setting(all_equal=True, other_axes="far"),
    *(Setting(),) * 6,  # Of two unknown numbers the first is the larger one in some of them.
)


WITHOUT_ELEMENTS = (*(Setting(is_empty=True),) * 3,)


def known(
    v: Value,
    given: Mapping[Load, Number | None],
    axes: frozenset[Axis],
    settings: Sequence[Setting] = SETTINGS,
) -> Number | None:
    """The value past the end of `axes`, where the given loads give the given numbers; None if it depends.

    A load of None holds whatever was in memory: NaN, so that nothing is taken to absorb it.
    """
    samples = (_Sample(given, axes, setting, seed).of(v) for seed, setting in enumerate(settings))
    first = next(samples)
    return first if first == first and all(x == first for x in samples) else None


def where_else(inside: Value, value: Value, other: Number) -> Value:
    """The value where `inside`, else `other`: a literal beyond 32 bits is no value of a shorter integer's."""
    wide = kind_of(value) == "int" and not can_hold("int32", other)
    return op("where", inside, op("to_int64", value) if wide else value, other)


def can_hold(dtype: str, x: Number) -> bool:
    """Whether a masked load of that dtype can give the number, which would else wrap round."""
    if not dtype.startswith(("int", "uint")):
        return not (dtype == "float8_e4m3fn" and math.isinf(x))
    limits = np.iinfo(dtype)
    return bool(limits.min <= x <= limits.max)


class _Sample:
    def __init__(
        self, given: Mapping[Load, Number | None], axes: frozenset[Axis], setting: Setting, seed: int
    ) -> None:
        self.given, self.axes, self.setting = given, axes, setting
        self.rng = random.Random(seed)
        self.done: dict[Value, Number] = {}

    def of(self, v: Value) -> Number:
        if v not in self.done:
            self.done[v] = self.compute(v)
        return self.done[v]

    def compute(self, v: Value) -> Number:
        match v:
            case Const(value=x):
                return x
            case Extent(size=size) if self.setting.dims_are_one:
                return _at_dims_of_one(size)
            case Argument(source=source, is_of_sizes=True) if (
                found := _of_sizes(source, self.rng)
            ) is not None:
                return found
            case Map(fn="lt", args=(Index(axis=a), n)) if a in self.axes and _is_size(n, a):
                return False
            case Map(fn="eq" | "ne" as fn, args=(a, b)) if self.setting.all_equal and self.may_meet(a, b):
                return fn == "eq"
            case Map(fn=fn, args=args) if self.setting.is_nan and self.compares_nan(fn, args):
                return fn in ("ne", "is_nan")
            case Map(fn="where", args=(c, x, other)) if self.setting.all_equal and self.is_unknown(c):
                return self.of(x) if math.isfinite(self.of(x)) else self.of(other)
            case Map(fn="where", args=(c, x, other)) if self.is_open(c):
                found = self.of(x)
                return found if found == self.of(other) else math.nan
            case Index(axis=a) if self.setting.other_axes != "anywhere" and a not in self.axes:
                near = {"at 0": 0, "at 1": 1}
                return near.get(self.setting.other_axes, FAR + self.rng.randrange(FAR))
            case Map(fn=fn, args=args):
                return self.mapped(fn, [self.of(a) for a in args])
            case Load() if v in self.given:
                lanes = self.given[v]
                return math.nan if lanes is None else lanes
            case Load(where=where) if axes_of(v) & self.axes:
                return v.other if where is not None else math.nan
            case Reduce(monoid=m, axes=bound) if self.setting.is_empty and self.axes.intersection(bound):
                return m.identity[0]
            case Reduce(monoid=m, args=(x,)) if m in (SUM, MAX, MIN, PEAK) and axes_of(v) & self.axes:
                # Over other axes: what is the same number in all of these lanes stays it.
                inside = self.of(x)
                return inside if inside == m.identity[0] or m != SUM else math.nan
            case Reduce(monoid=m, args=(x,)) if (
                self.setting.all_equal and m in (MAX, MIN, PEAK) and math.isfinite(past_end := self.of(x))
            ):
                # A row's largest element may be no larger than a number past the row's end.
                return past_end
        return self.unknown(v)

    def may_meet(self, a: Value, b: Value) -> bool:
        """Whether one is unknown, and neither is an index past the end, which no data is equal to."""
        inside = list(walk(a, b))
        past = any(isinstance(v, Index) and v.axis in self.axes for v in (a, b))
        return a != b and not past and any(isinstance(v, Load) and v not in self.given for v in inside)

    def compares_nan(self, fn: str, args: Sequence[Value]) -> bool:
        """Whether it compares a number that may be NaN: one that is loaded, or computed of such a number."""
        inside = walk(*(v for v in args if kind_of(v) == "float")) if fn in COMPARISONS else ()
        loads = (v for v in inside if isinstance(v, Load) and not axes_of(v) & self.axes)
        return any(v.buffer.kind == "float" for v in loads)

    def is_unknown(self, condition: Value) -> bool:
        """Whether data decides it, which is equal to no index past the end, but may be larger."""
        inside = list(walk(condition))
        compared = (a for v in inside if isinstance(v, Map) and v.fn in ("eq", "ne") for a in v.args)
        past = any(isinstance(v, Index) and v.axis in self.axes for v in compared)
        return not past and any(isinstance(v, Load) and v not in self.given for v in inside)

    def is_open(self, condition: Value) -> bool:
        """Whether it may hold or not past the end: other axes' indices and data decide it alone."""
        inside = list(walk(condition))
        decides = any(isinstance(v, Index) or (isinstance(v, Load) and v not in self.given) for v in inside)
        return decides and not axes_of(condition) & self.axes and self.given.keys().isdisjoint(inside)

    def mapped(self, fn: str, args: list[Number]) -> Number:
        if any(x != x for x in args):
            return _of_unknown(fn, args)
        with np.errstate(all="ignore"):
            try:
                found = FUNCTIONS[fn].numpy(*args)
            except (TypeError, ValueError, ZeroDivisionError):
                # Bits of a number that is not whole: unknown.
                return math.nan
            result: Number = found.item() if isinstance(found, np.generic | np.ndarray) else found
            return result

    def unknown(self, v: Value) -> Number:
        for c in children(v):
            self.of(c)
        if self.setting.is_infinite and isinstance(v, Load) and kind_of(v) == "float":
            return math.inf
        match kind_of(v):
            case "bool":
                return self.rng.random() < 0.5
            case "int":
                # What data holds, and what is computed of it, may be negative; positions and sizes are not.
                is_data = isinstance(v, Load | Reduce | Scan | Get)
                return self.rng.randrange(3, 1000) * (self.rng.choice(self.setting.signs) if is_data else 1)
        return self.rng.uniform(0.5, 1.5) * self.rng.choice(self.setting.signs) * self.setting.scale


def _of_sizes(source: str, rng: random.Random) -> float | None:
    """A number that `run` computes from sizes, which are positive: `math.sqrt(N)` is, too."""
    if source.isidentifier():  # One of the function's own numbers.
        return None
    try:
        return float(value_of(source, {n: rng.randrange(3, 1000) for n in sorted(names_in(source))}))
    except (ArithmeticError, ValueError, TypeError, BadDeclaration):
        return None


@cache
def _at_dims_of_one(size: Size) -> Number:
    """The size where every dim is 1; NaN where there is none."""
    try:
        return value(size, dict.fromkeys(names(size), 1))
    except (ArithmeticError, TypeError):
        return math.nan


def _of_unknown(fn: str, args: list[Number]) -> Number:
    """A function of something unknown: so is the result, but for what is chosen without it."""
    match fn, args:
        case "where", (inside, x, other) if inside == inside:
            return x if inside else other
        case "and", _ if False in args:
            return False
        case "or", _ if True in args:
            return True
    return math.nan


def _is_size(n: Value, a: Axis) -> bool:
    return bool(size_of(n) == a.size)


def without_tails(cluster: Cluster) -> Cluster:
    """The cluster with such a reduction over all but the last element, combined with that.

    So what is stored of the others alone runs over the axis that is reduced. Nothing changes where results
    run over all elements.
    """
    lengths = [a.size for a in cluster.free()]

    def apart(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(arg,), axes=(axis,)) if m.is_plain:
                end = _last(arg, axis)
                if end is not None and not any(equal(axis.size, n) for n in lengths):
                    others = Axis(f"{axis.name}_", end)
                    head = substitute(_assumed(arg, axis, end, before=True), {axis: Index(others)})
                    tail = substitute(_assumed(arg, axis, end, before=False), {axis: extent(end)})
                    return m.combine((Reduce(m, (head,), (others,), v.name),), (tail,))[0]
        return None

    def parted(root: Value) -> Value:
        new = rewrite(root, apart)
        if new is root:
            return root
        for axis in axes_in_order(new):
            new = _assumed(new, axis, axis.size, before=True)
        return new

    return cluster.map(parted)


def _last(arg: Value, axis: Axis) -> Size | None:
    """The last place on the axis, where a condition asks whether an element lies before it."""
    ends = (size_of(v.args[1]) for v in walk(arg) if isinstance(v, Map) and _bound(v, axis))
    return next((n for n in ends if n is not None and equal(n + 1, axis.size)), None)


def _bound(v: Map, axis: Axis) -> bool:
    return v.fn in ("lt", "ge") and v.args[0] == Index(axis)


def _assumed(arg: Value, axis: Axis, end: Size, *, before: bool) -> Value:
    """The value where the element lies before the end, or at it."""

    def known(v: Value) -> Value | None:
        match v:
            case Map(fn="lt" | "ge" as fn, args=(_, n)) if _bound(v, axis):
                size = size_of(n)
                return Const((fn == "lt") is before) if size is not None and equal(size, end) else None
        return decided(v)

    return rewrite(arg, known)
