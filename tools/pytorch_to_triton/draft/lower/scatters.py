"""Operators that write into a copy of a tensor, seen from the elements: what does each of them become?

A part that its position gives away is a `where`. Where index tensors say what is written, each element looks
for itself among them: that is done where it is short, and refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import every, extent, minus, quotient, remainder
from pytorch_to_triton.draft.ir.monoids import MAX, MIN, PROD, SUM, identities
from pytorch_to_triton.draft.ir.rewriting import substitute
from pytorch_to_triton.draft.ir.sizes import ONE, ZERO, Size
from pytorch_to_triton.draft.ir.values import Axis, Const, Monoid, Number, Reduce, Value, axes_of, kind_of, op
from pytorch_to_triton.draft.lower.creation import Triangle, triangle_of
from pytorch_to_triton.draft.lower.gathers import arranged, indexed_dims, wrapped
from pytorch_to_triton.draft.lower.joins import between
from pytorch_to_triton.draft.lower.reductions import running
from pytorch_to_triton.draft.lower.row import Context, Refused, as_kind, cast, number, row, where
from pytorch_to_triton.draft.lower.tensor import (
    Dim,
    Names,
    Tensor,
    broadcast,
    digits,
    guarded,
    position,
    positions,
    reshaped,
)
from pytorch_to_triton.draft.lower.views import first_of_slice, from_start

FEW = 64
"""Among so many places, at most, an element looks for itself ..."""
MOST_LOOKS = 2**24
"""... and among more of them where this is enough for all elements."""
AT_ONCE = 8
"""So many places are compared without a loop, in whatever kernel goes on with the element."""
REDUCTIONS: Mapping[str, tuple[Monoid, str]] = {
    "sum": (SUM, "add"),
    "prod": (PROD, "mul"),
    "amax": (MAX, "maximum"),
    "amin": (MIN, "minimum"),
}


@row("aten.copy.default", arguments="input src non_blocking")
def copy(ctx: Context, input: Tensor, src: Tensor) -> Tensor:
    dims, (_, value) = broadcast([input, src])
    return cast(replace(src, dims=dims, value=value), input.dtype)


def with_selected(x: Tensor, src: Tensor, at: int, index: Any) -> Tensor:
    """x, with `src` at one index of a dimension."""
    places = list(x.indices)
    inside = op("eq", places.pop(at), extent(from_start(index, x.shape[at])))
    return replace(x, value=op("where", inside, guarded(src.at(*places), inside), x.value))


@row("aten.slice_scatter.default", arguments="input src dim start end step")
def slice_scatter(
    ctx: Context, input: Tensor, src: Tensor, dim: int = 0, start: Any = None, step: int = 1
) -> Tensor:
    return with_slice(ctx.names, input, src, dim % len(input), start, step)


def with_slice(names: Names, x: Tensor, src: Tensor, at: int, start: Any, step: int) -> Tensor:
    """x, with `src` from `start` on in a dimension; where it ends, the size of `src` says."""
    size, count = x.shape[at], src.shape[at]
    if sizes.equal(count, size) or count == ZERO:
        return x if count == ZERO else src
    first = first_of_slice(start, size)
    if sizes.equal(count * step, size):
        turns = reshaped(names, x, (*x.shape[:at], count, sizes.size(step), *x.shape[at + 1 :]))
        return reshaped(names, with_selected(turns, src, at + 1, first), x.shape)
    places = list(x.indices)
    inside = between(places[at], first, first + (count - 1) * step + 1, size)
    past = minus(places[at], extent(first))
    if step != 1:
        inside = inside & op("eq", remainder(past, sizes.size(step)), 0)
    places[at] = quotient(past, sizes.size(step))
    return replace(x, value=op("where", inside, guarded(src.at(*places), inside), x.value))


@dataclass(frozen=True)
class Search:
    """An element's search for itself among index tensors: over `axes`, found where `hit`."""

    hit: Value
    value: Value
    """What is written from there."""
    axes: tuple[Axis, ...]

    def over(self, monoid: Monoid, value: Value, otherwise: Number) -> Value:
        """The monoid over what is written to the element."""
        chosen = op("where", self.hit, value, otherwise)
        if not self.axes:
            return chosen
        number = sizes.product(a.size for a in self.axes)
        if len(self.axes) == 1 and number.is_Integer and 0 < number <= AT_ONCE:
            (axis,) = self.axes
            parts = (substitute(chosen, {axis: Const(i)}) for i in range(int(number)))
            return reduce(lambda a, b: monoid.combine((a,), (b,))[0], parts)
        return Reduce(monoid, (chosen,), self.axes)

    def onto(self, x: Value, how: str) -> Value:
        """The element with what is written to it, put together by a row of REDUCTIONS."""
        monoid, fn = REDUCTIONS[how]
        return op(fn, x, self.written(monoid))

    def reduced(self, x: Value, how: str, *, include_self: bool) -> Value:
        """The element with what is written to it, or that alone where anything is."""
        if how == "mean":
            return self.averaged(x, include_self=include_self)
        if how not in REDUCTIONS:
            raise Refused(f"it scatters by {how}")
        return self.onto(x, how) if include_self else self.instead(x, self.written(REDUCTIONS[how][0]))

    def averaged(self, x: Value, *, include_self: bool) -> Value:
        """The mean of what is written to the element, and of itself where it counts."""
        if kind_of(x) != "float":
            raise Refused("it scatters by the mean of whole numbers")
        total, count = self.written(SUM), self.over(SUM, Const(1.0), 0.0)
        if include_self:
            return (x + total) / (count + 1.0)
        return where(count > 0.0, total / count, x)

    def written(self, monoid: Monoid) -> Value:
        """What is written to the element alone."""
        kind = kind_of(self.value)
        if kind == "bool":
            raise Refused("it adds up booleans")
        return self.over(monoid, self.value, identities(monoid, kind)[0])

    def instead(self, x: Value, value: Value) -> Value:
        """The value, one for all places, where anything is written, else the element."""
        if axes_of(value) & set(self.axes):
            raise Refused("it scatters, and which of two values stays is left open")
        found = self.over(SUM, Const(1), 0) > 0 if self.axes else self.hit
        return op("where", found, value, x)


def _short(ctx: Context, x: Tensor, targets: Size, sources: Size) -> None:
    """Raises Refused where every target would look at many sources, and there are many elements that do."""
    looks = sizes.product(x.shape) * sources
    if not ctx.is_within((targets, FEW), (sources, FEW), (looks, MOST_LOOKS)):
        raise Refused("it scatters")


def _search_along(ctx: Context, x: Tensor, dim: int, index: Tensor, src: Tensor | None) -> Search:
    """Along one dimension, `index` and `src` being shaped as `x` is or smaller."""
    if not x.dims or not index.dims:
        raise Refused("it scatters into a number")
    at = dim % len(x)
    _short(ctx, x, x.shape[at], index.shape[at])
    index = ctx.apart(index, x.dims)
    places = list(x.indices)
    bounds = [
        place < extent(n)
        for d, (place, n, whole) in enumerate(zip(places, index.shape, x.shape, strict=True))
        if d != at and not sizes.equal(n, whole)
    ]
    places[at] = position(index.dims[at])
    hit = op("eq", index.at(*places), position(x.dims[at]))
    value = x.value if src is None else src.at(*places)
    if (inside := every(bounds)) is not None:
        hit, value = inside & guarded(hit, inside), guarded(value, inside)
    return Search(hit, value, index.dims[at])


def _vector(x: Tensor) -> Tensor:
    """A number as a vector of one element."""
    return x if x.dims else replace(x, dims=((),))


def _search_at(ctx: Context, x: Tensor, dim: int, index: Tensor, src: Tensor | None) -> Search:
    """Whole slices of one dimension, whose places a vector or number gives."""
    at = dim % len(x)
    index = ctx.apart(index, x.dims)
    along = index.dims[0] if index.dims else ()
    _short(ctx, x, x.shape[at], index.shape[0] if index.dims else ONE)
    hit = op("eq", wrapped(index.value, x.shape[at]), position(x.dims[at]))
    places = [*x.indices[:at], position(along), *x.indices[at + 1 :]]
    return Search(hit, x.value if src is None else src.at(*places), along)


@row("aten.scatter.value")
def scatter_value(ctx: Context, input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    found = _search_along(ctx, input, dim, index, None)
    return replace(input, value=found.instead(input.value, as_kind(number(value), input.kind)))


@row("aten.scatter.src")
def scatter_src(ctx: Context, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    found = _search_along(ctx, input, dim, index, src)
    return replace(input, value=found.instead(input.value, found.value))


@row("aten.scatter_add.default")
def scatter_add(ctx: Context, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    found = _search_along(ctx, input, dim, index, src)
    return replace(input, value=found.onto(input.value, "sum"))


@row("aten.scatter_reduce.two")
def scatter_reduce(
    ctx: Context,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    found = _search_along(ctx, input, dim, index, src)
    return replace(input, value=found.reduced(input.value, reduce, include_self=include_self))


@row("aten.index_reduce.default")
def index_reduce(
    ctx: Context,
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    found = _search_at(ctx, _vector(input), dim, index, _vector(source))
    return replace(input, value=found.reduced(input.value, reduce, include_self=include_self))


@row("aten.index_put.default")
def index_put(
    ctx: Context,
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> Tensor:
    given = [(at, i) for at, i in enumerate(indices) if i is not None]
    if len(given) == 1 and given[0][1].dtype == "bool":
        found = _masked(input, *given[0], values)
    else:
        input, found = _indexed(ctx, input, indices, values)
    value = found.onto(input.value, "sum") if accumulate else found.instead(input.value, found.value)
    return replace(input, value=value)


def _masked(x: Tensor, at: int, mask: Tensor, values: Tensor) -> Search:
    """Where a mask over dimensions from `at` on holds; the values must be one for all that it selects."""
    behind = at + len(mask)
    dims = (*x.dims[:at], (), *x.dims[behind:])
    aligned = dims[len(dims) - len(values) :]
    selected = len(values) - len(x.dims[behind:]) - 1
    if selected >= 0 and values.dims[selected]:
        raise Refused("which value goes where is only known from the mask's values")
    value = values.at(*map(position, aligned))
    return Search(mask.at(*x.indices[at:behind]), value, ())


@row("aten.masked_scatter.default")
def masked_scatter(ctx: Context, input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask holds, the element of the source whose number is how often it held before."""
    dims, (chosen, value) = broadcast([mask, input])
    whole = Tensor(dims, chosen, mask.dtype)
    flat = reshaped(ctx.names, cast(whole, "int64"), (sizes.product(whole.shape),))
    count = reshaped(ctx.names, ctx.stored("count", running(ctx, SUM, flat, 0)), whole.shape)
    source = ctx.apart(reshaped(ctx.names, source, (sizes.product(source.shape),)), dims)
    place = minus(count.at(*map(position, dims)), Const(1))
    # PyTorch refuses a source of too few elements, which only the mask tells: nothing behind it is read.
    inside = chosen & op("lt", place, extent(source.shape[0]))
    return ctx.tensor(dims, where(chosen, source.where([place], inside, 0), value))


def _triangle(
    ctx: Context, x: Tensor, at: Collection[int], new: Sequence[Dim], indices: Sequence[Value]
) -> Triangle | None:
    """The triangle of neighbouring dimensions whose places the index tensors give, each once."""
    if len(new) != 1 or len(at) != 2 or max(at) - min(at) != 1:
        return None
    return triangle_of([ctx.seen_through(i) for i in indices], new[0], [x.shape[d] for d in sorted(at)])


def _at_places(triangle: Triangle, x: Tensor, at: int, values: Tensor) -> Search:
    """What is written to an element by its place in a triangle: nobody has to search."""
    i, j = x.indices[at], x.indices[at + 1]
    places = [*x.indices[:at], triangle.number(i, j), *x.indices[at + 2 :]]
    inside = triangle.holds(i, j)
    return Search(inside, guarded(values.at(*places[len(places) - len(values) :]), inside), ())


def _indexed(
    ctx: Context, x: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> tuple[Tensor, Search]:
    """Where index tensors say; also the tensor, with no axis that is one of theirs."""
    given = indexed_dims(indices)
    new, found = broadcast(list(given.values()))
    x = ctx.apart(x, new)
    if (triangle := _triangle(ctx, x, given, new, found)) is not None:
        return x, _at_places(triangle, x, min(given), values)
    running = _running(ctx, x, given, found)
    places = {
        axis: place for at, dim in running.items() for axis, place in positions(dim, x.indices[at]).items()
    }
    axes = tuple(a for d in new for a in d if a not in places)
    searched = {at: i for at, i in zip(given, found, strict=True) if at not in running}
    _short(ctx, x, sizes.product(x.shape[at] for at in searched), sizes.product(a.size for a in axes))
    hits = (
        op("eq", substitute(wrapped(i, x.shape[at]), places), x.indices[at]) for at, i in searched.items()
    )
    dims = arranged(x, new, list(given))
    value = values.at(*map(position, dims[len(dims) - len(values) :]))
    return x, Search(every(hits) or Const(True), substitute(value, places), axes)


def _running(ctx: Context, x: Tensor, at: Collection[int], indices: Sequence[Value]) -> Mapping[int, Dim]:
    """The dimensions of which the index is `arange` of their size, each by axes of its own: an element has no
    other place there than its own, so nobody searches along them."""
    running: dict[int, Dim] = {}
    for d, index in zip(at, indices, strict=True):
        dim = digits(ctx.seen_through(index), x.shape[d])
        if dim and not {*dim} & {a for taken in running.values() for a in taken}:
            running[d] = dim
    return running
