"""Sums of products: matrix products of any ranks, and attention with its softmax between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from pytorch_to_triton.draft.ir.indices import quotient
from pytorch_to_triton.draft.ir.monoids import PEAK, SUM
from pytorch_to_triton.draft.ir.sizes import FloorDiv, equal, text
from pytorch_to_triton.draft.ir.values import Argument, Reduce, Value, named, op
from pytorch_to_triton.draft.lower.reductions import statistic
from pytorch_to_triton.draft.lower.row import Context, Operand, Refused, number, row
from pytorch_to_triton.draft.lower.tensor import Tensor, broadcast


def contracted(ctx: Context, a: Tensor, b: Tensor, name: str | None = None) -> Tensor:
    """[..., M, K] @ [..., K, N] -> [..., M, N]; the leading dimensions broadcast."""
    b = ctx.apart(b, a.dims)
    tall = replace(a, dims=(*a.dims, ()))
    wide = replace(b, dims=(*b.dims[:-2], (), *b.dims[-2:]))
    (*kept, k, n), values = broadcast([tall, wide])
    terms = op("mul", *values)
    return ctx.tensor((*kept, n), Reduce(SUM, (terms,), k, name) if k else terms)


def product(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """What `a @ b` is for vectors, matrices and stacks of them."""
    tall = a if len(a) > 1 else replace(a, dims=((), *a.dims))
    wide = b if len(b) > 1 else replace(b, dims=(*b.dims, ()))
    found = contracted(ctx, tall, wide)
    *lead, m, n = found.dims
    ends = [m] * (len(a) > 1) + [n] * (len(b) > 1)
    return replace(found, dims=(*lead, *ends))


@row("aten.mm.default", "aten.bmm.default")
def mm(ctx: Context, input: Tensor, mat2: Tensor) -> Tensor:
    return contracted(ctx, input, mat2)


@row("aten.linear.default")
def linear(ctx: Context, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found = product(ctx, input, replace(weight, dims=weight.dims[::-1]))
    return found if bias is None else ctx.pointwise("add", found, bias)


@row("aten.addmm.default")
def addmm(
    ctx: Context, input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1
) -> Tensor:
    return added(ctx, input, contracted(ctx, mat1, mat2), beta, alpha)


@row("aten.baddbmm.default")
def baddbmm(
    ctx: Context, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1
) -> Tensor:
    return added(ctx, input, contracted(ctx, batch1, batch2), beta, alpha)


@row("aten.addbmm.default")
def addbmm(
    ctx: Context, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1
) -> Tensor:
    products = contracted(ctx, batch1, batch2)
    batch, value = products.dims[0], products.value
    if batch and isinstance(value, Reduce):
        value = replace(value, axes=(*batch, *value.axes))
    elif batch:
        value = Reduce(SUM, (value,), batch)
    return added(ctx, input, replace(products, dims=products.dims[1:], value=value), beta, alpha)


@row("aten._trilinear.default", arguments="i1 i2 i3 expand1 expand2 expand3 sumdim unroll_dim")
def trilinear(
    ctx: Context,
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
) -> Tensor:
    first, second = expanded(i1, expand1), expanded(ctx.apart(i2, i1.dims), expand2)
    both = ctx.pointwise("mul", first, second)
    product = ctx.pointwise("mul", both, ctx.apart(expanded(i3, expand3), both.dims))
    return ctx.reduce(SUM, product, sumdim)  # How far it is unrolled changes no result.


def expanded(x: Tensor, places: Sequence[int]) -> Tensor:
    """The tensor with dimensions of size 1 at these places of the result."""
    dims = list(x.dims)
    for at in sorted(places):
        dims.insert(at, ())
    return replace(x, dims=tuple(dims))


@row("aten.addmv.default")
def addmv(
    ctx: Context, input: Tensor, mat: Tensor, vec: Tensor, *, beta: Operand = 1, alpha: Operand = 1
) -> Tensor:
    return added(ctx, input, product(ctx, mat, vec), beta, alpha)


def added(ctx: Context, input: Tensor, found: Tensor, beta: Operand, alpha: Operand) -> Tensor:
    """beta * input + alpha * found; with beta 0 the input is not read, whatever NaN it holds."""
    scaled = times(ctx, found, alpha)
    return scaled if beta == 0 else ctx.pointwise("add", scaled, times(ctx, input, beta))


def times(ctx: Context, x: Tensor, factor: Operand) -> Tensor:
    """The tensor times a number."""
    return x if factor == 1 else ctx.pointwise("mul", x, factor)


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
    numerator = op("exp", scores.value - shift, name="numerator")
    total: Value = Reduce(SUM, (numerator,), keys, name="total") if keys else numerator
    total = op("where", op("eq", total, 0.0), 1.0, total, name="denominator")
    return replace(scores, value=op("div", numerator, total, name="weights"))


def causal(scores: Tensor) -> Tensor:
    """A query sees the keys up to its own position, counted from the first of each.

    Without heads PyTorch has no kernel of its own and adds -inf: a NaN that is not seen stays one.
    """
    query, key = scores.indices[-2:]
    seen = key <= query
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
