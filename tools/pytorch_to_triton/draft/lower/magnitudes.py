"""Norms of vectors, and the logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.ir.monoids import MAX, MIN, SUM
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.arithmetic import power
from pytorch_to_triton.draft.lower.contractions import distinct
from pytorch_to_triton.draft.lower.formulas import mapped, where
from pytorch_to_triton.draft.lower.reductions import Dims
from pytorch_to_triton.draft.lower.row import Context, Refused, all_dims, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


def vector_norm(ctx: Context, x: Tensor, ord: Any, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """The norm of this order over dimensions, in the result's dtype."""
    if not isinstance(ord, int | float):
        raise Refused("the norm's order is no literal")

    def reduced(monoid: Any, term: Any) -> Tensor:
        return ctx.reduce(monoid, mapped(ctx, term, cast(x, ctx.dtype)), dims, keepdim)

    match ord:
        case math.inf:
            return reduced(MAX, _magnitude)
        case _ if ord == -math.inf:
            return reduced(MIN, _magnitude)
        case 0:
            return reduced(SUM, lambda v: where(op("ne", v, 0.0), 1.0, 0.0))
        case 1:
            return reduced(SUM, _magnitude)
        case 2:
            total = reduced(SUM, lambda v: op("square", v))
            return replace(total, value=op("sqrt", total.value))
    total = reduced(SUM, lambda v: power(_magnitude(v), ord))
    return replace(total, value=power(total.value, 1.0 / ord))


def _magnitude(v: Value) -> Value:
    return op("abs", v)


@row("aten.linalg_vector_norm.default", arguments="input ord dim keepdim dtype")
def linalg_vector_norm(
    ctx: Context, input: Tensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False
) -> Tensor:
    return vector_norm(ctx, input, ord, all_dims(input, dim), keepdim=keepdim)


@row("aten.dist.default")
def dist(ctx: Context, input: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    apart = ctx.pointwise("sub", input, other)
    return vector_norm(ctx, apart, p, all_dims(apart, None))


@row("aten._cdist_forward.default", arguments="x1 x2 p compute_mode")
def cdist(ctx: Context, x1: Tensor, x2: Tensor, p: float) -> Tensor:
    x2 = distinct(ctx, x2, x1)
    one = replace(x1, dims=(*x1.dims[:-1], (), x1.dims[-1]))
    other = replace(x2, dims=(*x2.dims[:-2], (), *x2.dims[-2:]))
    # Whether PyTorch multiplies matrices for it is a matter of its speed.
    return vector_norm(ctx, ctx.pointwise("sub", one, other), p, (len(one) - 1,))
