"""The largest or smallest elements along a dimension, in their order."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus, plus
from pytorch_to_triton.draft.ir.monoids import MAX, MIN, identities
from pytorch_to_triton.draft.ir.values import Reduce, Value, op
from pytorch_to_triton.draft.lower.joins import joined
from pytorch_to_triton.draft.lower.row import Context, Refused, row, where
from pytorch_to_triton.draft.lower.tensor import Tensor

MOST_TAKEN = 6
"""Elements found one after the other, each in walks over all: for more, PyTorch's selection is faster."""


@row("aten.topk.default", arguments="input k dim largest sorted")
def topk(ctx: Context, input: Tensor, k: int, dim: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Time and again the best of what is left, and where it stands.

    What was taken is ranked behind all places, so that it loses to the infinities that are left.
    """
    if not isinstance(k, int):
        raise Refused("how many elements it takes is a size")
    if not 0 < k <= MOST_TAKEN:
        raise Refused(f"it takes more than {MOST_TAKEN} elements, or none")
    if not len(input) or input.kind == "bool":
        raise Refused("it ranks booleans, or a number")
    at = dim % len(input)
    if not input.dims[at]:
        return input, replace(input, value=input.indices[at], dtype="int64")
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
        values = [replace(v, value=where(p, nan, v.value)) for v, p in zip(values, past, strict=True)]
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
    return where(is_nan, inf, x.value), where(is_nan, plus(place, extent(x.shape[at])), place)


def _equal(x: Value, best: Value) -> Value:
    """Whether the element is as good as the best; NaN is as good as NaN."""
    return op("eq", x, best) | (op("ne", x, x) & op("ne", best, best))
