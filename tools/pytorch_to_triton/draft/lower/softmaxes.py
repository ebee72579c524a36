"""Softmax, its logarithm, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.monoids import PEAK, SUM
from pytorch_to_triton.draft.ir.values import op
from pytorch_to_triton.draft.lower.formulas import mapped, name_of, where
from pytorch_to_triton.draft.lower.reductions import Dims
from pytorch_to_triton.draft.lower.row import Context, all_dims, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


def _with_maxima(ctx: Context, input: Tensor, dim: Dims) -> tuple[Tensor, Tensor]:
    """The operand in the result's dtype, and its maxima along dimensions, which are kept."""
    x = cast(input, ctx.dtype)
    return x, ctx.reduce(PEAK, x, all_dims(x, dim), keepdim=True, name=f"{name_of(input)}_max")


@row("aten.softmax.int", arguments="input dim dtype")
@row("aten._softmax.default", arguments="input dim half_to_float")
def softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    x, top = _with_maxima(ctx, input, dim)
    numerator = mapped(ctx, lambda v, m: op("exp", op("sub", v, m), name="numerator"), x, top)
    total = ctx.reduce(SUM, numerator, all_dims(x, dim), keepdim=True, name="denominator")
    return mapped(ctx, lambda v, t: op("div", v, t), numerator, total)


@row("aten.log_softmax.int", arguments="input dim dtype")
@row("aten._log_softmax.default", arguments="input dim half_to_float")
def log_softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    x, top = _with_maxima(ctx, input, dim)
    shifted = mapped(ctx, lambda v, m: op("sub", v, m, name="shifted"), x, top)
    total = ctx.reduce(SUM, mapped(ctx, lambda v: op("exp", v), shifted), all_dims(x, dim), keepdim=True)
    log_sum = replace(total, value=op("log", total.value, name="log_sum"))
    return mapped(ctx, lambda v, s: op("sub", v, s), shifted, log_sum)


@row("aten.logsumexp.default")
def logsumexp(ctx: Context, input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    dims = all_dims(input, dim)
    x, top = _with_maxima(ctx, input, dim)
    shift = mapped(ctx, lambda m: where(op("is_inf", m), 0.0, m), top)
    shares = mapped(ctx, lambda v, s: op("exp", op("sub", v, s)), x, shift)
    total = ctx.reduce(SUM, shares, dims, keepdim=True)
    found = mapped(ctx, lambda t, s: op("add", op("log", t), s), total, shift)
    kept = found.dims if keepdim else tuple(d for i, d in enumerate(found.dims) if i not in dims)
    return replace(found, dims=kept)
