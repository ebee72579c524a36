"""Attention: scores, a softmax over the keys, a weighted sum of the values."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from pytorch_to_triton.draft.ir.indices import quotient
from pytorch_to_triton.draft.ir.monoids import PEAK, SUM
from pytorch_to_triton.draft.ir.sizes import FloorDiv, equal, text
from pytorch_to_triton.draft.ir.values import Argument, Reduce, Value, named, op
from pytorch_to_triton.draft.lower.contractions import contracted
from pytorch_to_triton.draft.lower.reductions import statistic
from pytorch_to_triton.draft.lower.row import Context, Operand, Refused, number, row
from pytorch_to_triton.draft.lower.tensor import Tensor

WITH_HEADS = 4
"""Dimensions of what PyTorch's own kernels for attention take."""


@row("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    ctx: Context,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Operand | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value, for [..., L, E], [..., S, E] and [..., S, Ev]."""
    if enable_gqa:
        key, value = (shared_by_heads(ctx, x, query) for x in (key, value))
    if dropout_p != 0.0:
        raise Refused("it drops weights at random")
    ctx = replace(ctx, dtype=query.dtype)
    factor = usual_scale(query) if scale is None else number(scale)
    product = contracted(ctx, query, transposed(key))
    scores = ctx.pointwise("mul", product, factor, name="scores")
    if is_causal:
        scores = causal(scores)
    if attn_mask is not None:
        scores = masked(ctx, scores, attn_mask)
    # What of them is in memory is not rounded to 16 bits: PyTorch's own kernels never store them.
    scores = ctx.stored("scores", statistic(scores))
    return contracted(ctx, ctx.stored("weights", softmax(scores)), value)


def softmax(scores: Tensor) -> Tensor:
    """The weights of the keys.

    Where all scores are -inf, by a mask or by an infinite key, the weights are 0, as in PyTorch.
    """
    keys = scores.dims[-1]
    peak: Value = Reduce(PEAK, (scores.value,), keys, name="scores_max") if keys else scores.value
    shift = op("where", op("eq", peak, -inf), 0.0, peak, name="shift")
    numerator = op("exp", op("sub", scores.value, shift), name="numerator")
    total: Value = Reduce(SUM, (numerator,), keys, name="total") if keys else numerator
    total = op("where", op("eq", total, 0.0), 1.0, total, name="denominator")
    return replace(scores, value=op("div", numerator, total, name="weights"))


def causal(scores: Tensor) -> Tensor:
    """A query sees the keys up to its own position, counted from the first of each.

    Without heads PyTorch has no kernel of its own and adds -inf: a NaN that is not seen stays one.
    """
    query, key = scores.indices[-2:]
    seen = op("le", key, query)
    if len(scores.dims) != WITH_HEADS:
        return replace(scores, value=op("add", scores.value, op("where", seen, 0.0, -inf), name="scores"))
    return replace(scores, value=op("where", seen, scores.value, -inf, name="scores"))


def masked(ctx: Context, scores: Tensor, mask: Tensor) -> Tensor:
    """A boolean mask says which keys are seen, any other is added."""
    if mask.kind == "bool":
        found = ctx.where(mask, scores, -inf)
        return replace(found, value=named("scores", found.value))
    return ctx.pointwise("add", scores, mask, name="scores")


def usual_scale(query: Tensor) -> Value:
    """1 / sqrt(E)."""
    size = query.shape[-1]
    if size.is_Integer:
        return number(float(size) ** -0.5)
    return Argument("scale", f"max({text(size)}, 1) ** -0.5")


def transposed(x: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    return replace(x, dims=(*x.dims[:-2], x.dims[-1], x.dims[-2]))


def shared_by_heads(ctx: Context, x: Tensor, query: Tensor) -> Tensor:
    """Keys or values of fewer heads than the queries': each serves as many consecutive ones as there are."""
    heads, own = query.shape[-3], x.shape[-3]
    if equal(heads, own):
        return x
    head = (ctx.axis("h", heads),)
    index = list(x.indices)
    alone = replace(x, dims=(*x.dims[:-3], head, *x.dims[-2:]))
    index[-3] = quotient(alone.indices[-3], FloorDiv(heads, own))
    return replace(alone, value=x.at(*index))
