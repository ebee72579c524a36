"""Sums of products: what PyTorch calls matmul, linear, dot and outer, of any ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import substitute
from pytorch_to_triton.draft.ir.values import Index, Reduce, op
from pytorch_to_triton.draft.lower.row import Context, Operand, row
from pytorch_to_triton.draft.lower.tensor import Tensor, broadcast


def distinct(ctx: Context, x: Tensor, other: Tensor) -> Tensor:
    """The tensor along axes that the other has not: both may come of one operand."""
    fresh = {a: ctx.axis(a.name, a.size) for a in x.axes if a in other.axes}
    if not fresh:
        return x
    dims = tuple(tuple(fresh.get(a, a) for a in d) for d in x.dims)
    return replace(x, dims=dims, value=substitute(x.value, {old: Index(new) for old, new in fresh.items()}))


def contracted(ctx: Context, a: Tensor, b: Tensor, name: str | None = None) -> Tensor:
    """[..., M, K] @ [..., K, N] -> [..., M, N]; the leading dimensions broadcast."""
    b = distinct(ctx, b, a)
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
    first, second = expanded(i1, expand1), expanded(distinct(ctx, i2, i1), expand2)
    both = ctx.pointwise("mul", first, second)
    product = ctx.pointwise("mul", both, distinct(ctx, expanded(i3, expand3), both))
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
