"""Running totals along a dimension."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.monoids import LAST_ARGMAX, LAST_ARGMIN, LOG_SUM_EXP, PROD, SUM
from pytorch_to_triton.draft.ir.values import Axis, Const, Get, Index, Monoid, Scan, op
from pytorch_to_triton.draft.lower.row import Context, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


@row("aten.cumsum.default", arguments="input dim dtype")
def cumsum(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return _running(ctx, SUM, input, dim)


@row("aten.cumprod.default", arguments="input dim dtype")
def cumprod(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return _running(ctx, PROD, input, dim)


@row("aten.logcumsumexp.default")
def logcumsumexp(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return _running(ctx, LOG_SUM_EXP, input, dim)


def _running(ctx: Context, monoid: Monoid, x: Tensor, dim: int) -> Tensor:
    x, axis = _along(ctx, cast(x, ctx.dtype), dim)
    if axis is None:
        return x
    return replace(x, value=Scan(monoid, (x.value,), axis, Index(axis)))


@row("aten.cummax.default")
def cummax(ctx: Context, input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _best_so_far(ctx, LAST_ARGMAX, input, dim)


@row("aten.cummin.default")
def cummin(ctx: Context, input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _best_so_far(ctx, LAST_ARGMIN, input, dim)


def _best_so_far(ctx: Context, monoid: Monoid, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    x, axis = _along(ctx, x, dim)
    if axis is None:
        return x, replace(x, value=Const(0), dtype="int64")
    value = cast(x, "int32").value if x.kind == "bool" else x.value
    found = Scan(monoid, (value, Index(axis)), axis, Index(axis))
    best = op("ne", Get(found, 0), 0) if x.kind == "bool" else Get(found, 0)
    return replace(x, value=best), replace(x, value=Get(found, 1), dtype="int64")


def _along(ctx: Context, x: Tensor, dim: int) -> tuple[Tensor, Axis | None]:
    """The tensor with one axis, or none, in this dimension, and that axis."""
    if not len(x):
        return x, None
    at = dim % len(x)
    axes = x.dims[at]
    if len(axes) < 2:
        return x, next(iter(axes), None)
    whole = ctx.axis(axes[0].name, x.shape[at])
    index = [Index(whole) if i == at else p for i, p in enumerate(x.indices)]
    merged = replace(x, dims=(*x.dims[:at], (whole,), *x.dims[at + 1 :]), value=x.at(*index))
    return merged, whole
