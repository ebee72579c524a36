"""Softmax and its logarithm."""

from __future__ import annotations

import math
from dataclasses import replace

from pytorch_to_triton.draft.ir.monoids import PEAK, SUM
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.formulas import compared, mapped, name_of
from pytorch_to_triton.draft.lower.row import Context, all_dims, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


def row_max(ctx: Context, x: Tensor, dim: int, name: str) -> Tensor:
    """The maximum along a dimension, which is kept."""
    return ctx.reduce(PEAK, x, all_dims(x, dim), keepdim=True, dtype=x.dtype, name=f"{name}_max")


def softmax_of(ctx: Context, x: Tensor, dim: int, name: str) -> Tensor:
    """exp(x - max) over its sum along a dimension."""
    top = row_max(ctx, x, dim, name)
    numerator = mapped(ctx, lambda v, m: op("exp", op("sub", v, m), name="numerator"), x, top)
    total = ctx.reduce(SUM, numerator, all_dims(x, dim), keepdim=True, name="denominator")
    return mapped(ctx, lambda v, t: op("div", v, t), numerator, total)


def log_softmax_of(ctx: Context, x: Tensor, dim: int, name: str) -> Tensor:
    """x - max less the logarithm of its exponentials' sum along a dimension; in x's dtype."""
    return mapped(ctx, less_partition, x, *log_partition(ctx, x, dim, name), dtype=x.dtype)


def log_partition(ctx: Context, x: Tensor, dim: int, name: str) -> tuple[Tensor, Tensor]:
    """The maximum along a dimension and log(sum(exp(x - max))), which have to be taken from x in turn."""
    top = row_max(ctx, x, dim, name)
    shares = mapped(ctx, lambda v, m: op("exp", op("sub", v, m, name="shifted")), x, top, dtype=x.dtype)
    total = ctx.reduce(SUM, shares, all_dims(x, dim), keepdim=True, dtype=x.dtype)
    return top, replace(total, value=op("log", total.value, name="log_sum"))


def less_partition(x: Value, top: Value, log_sum: Value) -> Value:
    """log(softmax) of an element."""
    return op("sub", op("sub", x, top, name="shifted"), log_sum)


@row("aten.softmax.int", arguments="input dim dtype")
def softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return softmax_of(ctx, cast(input, ctx.dtype), dim, name_of(input))


@row("aten._softmax.default", arguments="input dim half_to_float")
def softmax_kernel(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return softmax_of(ctx, cast(input, ctx.dtype), dim, name_of(input))


@row("aten._safe_softmax.default", arguments="input dim dtype")
def safe_softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    x = cast(input, ctx.dtype)
    found = softmax_of(ctx, x, dim, name_of(input))
    masked_out = compared(lambda m: op("eq", m, -math.inf), row_max(ctx, x, dim, name_of(input)))
    return ctx.where(masked_out, 0.0, found)


@row("aten.log_softmax.int", arguments="input dim dtype")
def log_softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return log_softmax_of(ctx, cast(input, ctx.dtype), dim, name_of(input))


@row("aten._log_softmax.default", arguments="input dim half_to_float")
def log_softmax_kernel(ctx: Context, input: Tensor, dim: int) -> Tensor:
    return log_softmax_of(ctx, cast(input, ctx.dtype), dim, name_of(input))
