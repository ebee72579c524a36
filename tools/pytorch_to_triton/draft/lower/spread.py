"""Variances and standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower.formulas import mapped
from pytorch_to_triton.draft.lower.reductions import Dims, average
from pytorch_to_triton.draft.lower.row import Context, Refused, all_dims, count, inside, row
from pytorch_to_triton.draft.lower.tensor import Tensor


def moments(
    ctx: Context, x: Tensor, dims: Sequence[int], correction: float = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """What deviates from the mean, the mean and the variance over dimensions, which are kept."""
    mean = ctx.stored("mean", statistic(average(ctx, x, dims, keepdim=True, name="mean")))
    centered = mapped(ctx, lambda v, m: op("sub", v, m, name="centered"), x, mean, dtype=x.dtype)
    squares = mapped(ctx, lambda v: op("square", v), centered, dtype=x.dtype)
    total = ctx.reduce(SUM, squares, dims, keepdim=True, dtype=x.dtype)
    var = replace(total, value=op("div", total.value, _freedom(x, dims, correction), name="var"))
    return centered, mean, var


def statistic(x: Tensor) -> Tensor:
    """A statistic of halves is float32."""
    return replace(x, dtype=x.dtype if x.dtype == "float64" else "float32")


def _freedom(x: Tensor, dims: Sequence[int], correction: float) -> Value:
    n = count(x, dims)
    if correction == int(correction):
        left = n - int(correction)
        return extent(sympy.Max(left, sizes.ZERO) if correction else left)
    if not n.is_Integer:
        raise Refused("its correction is no whole number")
    return Const(max(float(n) - correction, 0.0))


@row("aten.var_mean.correction")
def var_mean(
    ctx: Context, input: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = all_dims(input, dim)
    inner = replace(ctx, stored=inside)
    _, mean, var = moments(inner, input, dims, 1 if correction is None else correction)
    kept = tuple(d for i, d in enumerate(var.dims) if keepdim or i not in dims)
    return replace(var, dims=kept), replace(mean, dims=kept, dtype=input.dtype)


@row("aten.var.correction")
def var(
    ctx: Context, input: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return var_mean(ctx, input, dim, correction, keepdim)[0]
