"""The largest or smallest elements along a dimension, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus, plus
from pytorch_to_triton.draft.ir.monoids import ARGMAX, ARGMIN, identities
from pytorch_to_triton.draft.ir.values import Get, Reduce, op
from pytorch_to_triton.draft.lower.joins import joined
from pytorch_to_triton.draft.lower.row import Context, Refused, row, where
from pytorch_to_triton.draft.lower.tensor import Tensor

MOST_TAKEN = 8
"""Elements found one after the other, each in a walk over all: for more, PyTorch's selection is faster."""


@row("aten.topk.default", arguments="input k dim largest sorted")
def topk(ctx: Context, input: Tensor, k: int, dim: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Time and again the best of what is left, and where it stands."""
    if not isinstance(k, int) or not 0 < k <= MOST_TAKEN:
        raise Refused(f"it takes more than {MOST_TAKEN} elements, or none")
    if not len(input) or input.kind == "bool":
        raise Refused("it ranks booleans, or a number")
    at = dim % len(input)
    if not input.dims[at]:
        return input, replace(input, value=input.indices[at], dtype="int64")
    best, ranks = list[Tensor](), list[Tensor]()
    for _ in range(k):
        found = _best_left(input, at, ranks, largest=largest)
        dims = (*input.dims[:at], (), *input.dims[at + 1 :])
        best.append(ctx.stored("best", Tensor(dims, Get(found, 0), input.dtype)))
        ranks.append(ctx.stored("place", Tensor(dims, Get(found, 1), "int64")))
    if _has_nan_last(input, largest=largest):
        n = extent(input.shape[at])
        past = [op("ge", rank.value, n) for rank in ranks]
        best = [replace(b, value=where(p, nan, b.value)) for b, p in zip(best, past, strict=True)]
        ranks = [
            replace(r, value=where(p, minus(r.value, n), r.value)) for r, p in zip(ranks, past, strict=True)
        ]
    shape = (*input.shape[:at], sizes.size(k), *input.shape[at + 1 :])
    values = joined(replace(ctx, shape=shape, dtype=input.dtype), best, at)
    return values, joined(replace(ctx, shape=shape, dtype="int64"), ranks, at)


def _has_nan_last(x: Tensor, *, largest: bool) -> bool:
    """Whether NaN may be among the elements, of which it counts as the largest."""
    return not largest and x.kind == "float"


def _best_left(x: Tensor, at: int, taken: Sequence[Tensor], *, largest: bool) -> Reduce:
    """The best element whose rank is not `taken`, and its rank: its place, for a NaN where the smallest are
    wanted behind all places. What is taken stands behind them, and loses to the infinities that are left."""
    monoid = ARGMAX if largest else ARGMIN
    key, rank = x.value, x.indices[at]
    if _has_nan_last(x, largest=largest):
        is_nan = op("is_nan", key)
        key, rank = where(is_nan, inf, key), where(is_nan, plus(rank, extent(x.shape[at])), rank)
    worst, behind = identities(monoid, x.kind)[0], extent(2 * x.shape[at])
    free = rank
    for one in taken:
        is_taken = op("eq", rank, one.value)
        key, free = where(is_taken, worst, key), where(is_taken, behind, free)
    return Reduce(monoid, (key, free), x.dims[at])
