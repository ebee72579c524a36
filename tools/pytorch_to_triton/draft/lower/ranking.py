"""Sorting, and what it would tell: by each element's rank, which is how many come before it.

Each element is compared with all of its row, at once. That is less work than sorting where rows are short, or
few; others are left to PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus, plus, quotient
from pytorch_to_triton.draft.ir.monoids import MAX, MIN, SUM, identities
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Reduce, Value, op
from pytorch_to_triton.draft.lower.joins import joined
from pytorch_to_triton.draft.lower.row import Context, Refused, RowFunction, cast, row, where
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position, reshaped

SHORT = 16
"""Rows of so many elements are ranked, however many rows there are ..."""
COMPARISONS = 2**24
"""... and longer ones where this is enough for all of them.

On one H200 (2026-11) 262,144 rows of 16 are sorted in 128 us, by PyTorch in 217; 4096 elements in 31 us, by
PyTorch in 32; 8192 take 1.5 times PyTorch's time.
"""
MOST_TAKEN = 6
"""The best elements are found one after the other, each in walks over all, where they are no more."""


def ranks(ctx: Context, x: Tensor, at: int, *, descending: bool = False) -> Tensor:
    """How many elements of its row along a dimension come before each: of equals the earlier ones.

    NaN is the largest. Raises Refused for long rows.
    """
    n = x.shape[at]
    if not ctx.is_within((n, SHORT), (sizes.product(x.shape) * n, COMPARISONS)):
        raise Refused("it sorts long rows")
    if not x.dims[at]:
        return replace(x, value=Const(0), dtype="int32")
    one = _keys(x)
    other = ctx.apart(one, [one.dims[at]])
    low, high = (one, other) if descending else (other, one)
    is_earlier = other.indices[at] < one.indices[at]
    is_before = where(is_earlier, _is_at_most(low, high), op("not", _is_at_most(high, low)))
    count = Reduce(SUM, (op("to_int32", is_before),), other.dims[at])
    return ctx.stored("rank", Tensor(x.dims, count, "int32"))


def _keys(x: Tensor) -> Tensor:
    """What is ordered as the elements are."""
    return cast(x, "int32") if x.kind == "bool" else x


def _is_at_most(low: Tensor, high: Tensor) -> Value:
    found = low.value <= high.value
    return found | op("is_nan", high.value) if high.kind == "float" else found


def ranked(ctx: Context, x: Tensor, at: int, rank: Tensor, wanted: Value, dim: Dim) -> tuple[Tensor, Tensor]:
    """The elements that have the wanted ranks along a dimension, and where they stand there.

    The wanted ranks run over `dim`, which stands in that dimension's place.
    """
    searched = ctx.apart(rank, [rank.dims[at]])
    place = where(op("eq", searched.value, wanted), searched.indices[at], 0)
    if searched.dims[at]:
        place = Reduce(SUM, (place,), searched.dims[at])
    dims = (*x.dims[:at], dim, *x.dims[at + 1 :])
    places = ctx.stored("places", Tensor(dims, place, "int64"))
    index = [*x.indices[:at], places.value, *x.indices[at + 1 :]]
    return Tensor(dims, x.at(*index), x.dtype), places


def without(tensors: tuple[Tensor, Tensor], at: int, *, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Both without a dimension of size 1, unless it is kept."""
    if keepdim:
        return tensors
    value, place = (replace(t, dims=(*t.dims[:at], *t.dims[at + 1 :])) for t in tensors)
    return value, place


def alone(x: Tensor) -> tuple[Tensor, Tensor]:
    """A number, and that it stands at 0."""
    return x, replace(x, value=Const(0), dtype="int64")


@row("aten.sort.default")
@row("aten.sort.stable", arguments="input stable dim descending")
def sort(ctx: Context, input: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    if not len(input):
        return alone(input)
    at = dim % len(input)
    rank = ranks(ctx, input, at, descending=descending)
    return ranked(ctx, input, at, rank, input.indices[at], input.dims[at])


@row("aten.kthvalue.default")
def kthvalue(
    ctx: Context, input: Tensor, k: int | Size, dim: int = -1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if not len(input):
        return alone(input)
    at = dim % len(input)
    wanted = extent(sizes.size(k) - 1)
    return without(ranked(ctx, input, at, ranks(ctx, input, at), wanted, ()), at, keepdim=keepdim)


def _half_below(number: Value) -> Value:
    """The rank of the lower median of so many elements."""
    return quotient(minus(number, Const(1)), sizes.size(2))


def _in_the_middle(number: Value, nans: Value) -> Value:
    """The rank of the lower median, or of the first NaN where there is one."""
    return where(nans > 0, minus(number, nans), _half_below(number))


def _of_numbers_alone(number: Value, nans: Value) -> Value:
    """The rank of the lower median of all but NaN, which comes last; of NaN alone the first."""
    return where(nans < number, _half_below(minus(number, nans)), 0)


def _median(middle: Callable[[Value, Value], Value]) -> tuple[RowFunction, RowFunction]:
    """The rows of the median along a dimension and of that of all elements, given which rank it has."""

    def wanted(ctx: Context, x: Tensor, at: int) -> Value:
        number = extent(x.shape[at])
        if x.kind != "float" or not x.dims[at]:
            return _half_below(number)
        is_nan = replace(x, value=op("to_int32", op("is_nan", x.value)))
        nans = ctx.stored("nans", ctx.reduce(SUM, is_nan, (at,), keepdim=True, dtype="int32"))
        return middle(number, nans.value)

    def along(ctx: Context, input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if not len(input):
            return alone(input)
        at = dim % len(input)
        found = ranked(ctx, input, at, ranks(ctx, input, at), wanted(ctx, input, at), ())
        return without(found, at, keepdim=keepdim)

    def of_all(ctx: Context, input: Tensor) -> Tensor:
        size = sizes.product(input.shape)
        flat = reshaped(ctx.names, input, (size,))
        if not flat.axes:
            return input
        is_wanted = op("eq", ranks(ctx, flat, 0).value, wanted(ctx, flat, 0))
        chosen = where(is_wanted, flat.value, identities(MAX, flat.kind)[0])
        median, count = (
            Reduce(m, (v,), flat.axes) for m, v in ((MAX, chosen), (SUM, op("to_int32", is_wanted)))
        )
        # PyTorch gives NaN where there is no element: 0 / 0.
        nothing = cast(Tensor((), op("to_float", count) / op("to_float", count), "float32"), input.dtype)
        return ctx.tensor((), where(count > 0, median, nothing.value))

    return along, of_all


for _name, _middle in (("median", _in_the_middle), ("nanmedian", _of_numbers_alone)):
    _along, _of_all = _median(_middle)
    row(f"aten.{_name}.dim")(_along)
    row(f"aten.{_name}.default")(_of_all)


@row("aten.topk.default", arguments="input k dim largest sorted")
def topk(
    ctx: Context, input: Tensor, k: int | Size, dim: int = -1, largest: bool = True
) -> tuple[Tensor, Tensor]:
    if not len(input):
        return alone(input)
    at = dim % len(input)
    if isinstance(k, int) and 0 < k <= MOST_TAKEN and input.dims[at] and input.kind != "bool":
        return _best_in_turn(ctx, input, k, at, largest=largest)
    rank = ranks(ctx, input, at, descending=largest)
    taken = ctx.dim("k", sizes.size(k))
    return ranked(ctx, input, at, rank, position(taken), taken)


def _best_in_turn(ctx: Context, input: Tensor, k: int, at: int, *, largest: bool) -> tuple[Tensor, Tensor]:
    """Time and again the best of what is left, and where it stands.

    What was taken is ranked behind all places, so that it loses to the infinities that are left.
    """
    monoid, n = MAX if largest else MIN, extent(input.shape[at])
    worst, behind = identities(monoid, input.kind)[0], extent(2 * input.shape[at])
    dims = (*input.dims[:at], (), *input.dims[at + 1 :])
    left, ranks = (input.value, input.indices[at]) if largest else _nan_last(input, at)
    values, places = list[Tensor](), list[Tensor]()
    for _ in range(k):
        best = ctx.stored("best", Tensor(dims, Reduce(monoid, (left,), input.dims[at]), input.dtype))
        first = Reduce(MIN, (where(_equal(left, best.value), ranks, behind),), input.dims[at])
        place = ctx.stored("place", Tensor(dims, first, "int64"))
        is_taken = op("eq", ranks, place.value)
        left, ranks = where(is_taken, worst, left), where(is_taken, behind, ranks)
        values.append(best)
        places.append(place)
    if not largest and input.kind == "float":
        past = [place.value >= n for place in places]
        values = [replace(v, value=where(p, math.nan, v.value)) for v, p in zip(values, past, strict=True)]
        places = [
            replace(v, value=where(p, minus(v.value, n), v.value)) for v, p in zip(places, past, strict=True)
        ]
    shape = (*input.shape[:at], sizes.size(k), *input.shape[at + 1 :])
    return (
        joined(replace(ctx, shape=shape, dtype=input.dtype), values, at),
        joined(replace(ctx, shape=shape, dtype="int64"), places, at),
    )


def _nan_last(x: Tensor, at: int) -> tuple[Value, Value]:
    """Keys and ranks of which the smallest are wanted: NaN, which counts as the largest, is ranked behind all
    places."""
    place = x.indices[at]
    if x.kind != "float":
        return x.value, place
    is_nan = op("is_nan", x.value)
    return where(is_nan, math.inf, x.value), where(is_nan, plus(place, extent(x.shape[at])), place)


def _equal(x: Value, best: Value) -> Value:
    """Whether the element is as good as the best; NaN is as good as NaN."""
    return op("eq", x, best) | (op("ne", x, x) & op("ne", best, best))
