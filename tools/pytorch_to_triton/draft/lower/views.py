"""Operators that move no data: they change in which order, and which elements, a reader sees.

Pixels that become channels, and back, are among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus, plus, times
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Value
from pytorch_to_triton.draft.lower.row import Context, Refused, row
from pytorch_to_triton.draft.lower.tensor import Tensor, expanded, position, reshaped


@row("aten.alias.default", "aten.lift_fresh_copy.default")
@row("aten.clone.default", arguments="input memory_format")
def same(ctx: Context, input: Tensor) -> Tensor:
    return input


@row("aten.permute.default", "aten.permute_copy.default")
def permute(ctx: Context, input: Tensor, dims: Sequence[int]) -> Tensor:
    return replace(input, dims=tuple(input.dims[d % len(input)] for d in dims))


@row("aten.unsqueeze.default")
def unsqueeze(ctx: Context, input: Tensor, dim: int) -> Tensor:
    at = dim % (len(input) + 1)
    return replace(input, dims=(*input.dims[:at], (), *input.dims[at:]))


@row("aten.squeeze.dims")
def squeeze_dims(ctx: Context, input: Tensor, dim: int | Sequence[int]) -> Tensor:
    given = [dim] if isinstance(dim, int) else dim
    gone = {d % len(input) for d in given} if len(input) else set()
    return replace(input, dims=tuple(d for i, d in enumerate(input.dims) if d or i not in gone))


@row("aten.expand.default", arguments="input size implicit")
def expand(ctx: Context, input: Tensor) -> Tensor:
    return expanded(ctx.names, input, ctx.shape)


@row("aten.view.default", "aten.view_copy.default", arguments="input size")
def view(ctx: Context, input: Tensor) -> Tensor:
    return reshaped(ctx.names, input, ctx.shape)


def cut(ctx: Context, x: Tensor, dim: int, start: Size, size: Size, step: int = 1) -> Tensor:
    """`size` elements of one dimension, from `start` on, each `step` further."""
    at = dim % len(x)
    if sizes.equal(size, x.shape[at]) and step == 1:
        return x
    if step > 1 and sizes.equal(size * step, x.shape[at]):
        turns = reshaped(ctx.names, x, (*x.shape[:at], size, sizes.size(step), *x.shape[at + 1 :]))
        return selected(ctx, turns, at + 1, start)
    hint = x.dims[at][0].name if x.dims[at] else "i"
    new = ctx.dim(hint, size)
    index: list[Value] = list(x.indices)
    index[at] = plus(times(position(new), sizes.size(step)), extent(start))
    return replace(x, dims=(*x.dims[:at], new, *x.dims[at + 1 :]), value=x.at(*index))


def selected(ctx: Context, x: Tensor, at: int, index: Size) -> Tensor:
    """One index of a dimension."""
    one = cut(ctx, x, at, index, sizes.ONE)
    return replace(one, dims=(*one.dims[:at], *one.dims[at + 1 :]))


def from_start(position: int | Size | None, size: Size) -> Size:
    """A position that may count from the end, or be None, as one from the start."""
    if position is None:
        return sizes.ZERO
    if isinstance(position, int):
        return size + position if position < 0 else sizes.size(position)
    return position


def first_of_slice(start: int | Size | None, size: Size) -> Size:
    """Where a slice begins: what lies before the first element is left out."""
    first = from_start(start, size)
    return sizes.ZERO if first.is_negative else first


@row("aten.slice.Tensor", arguments="input dim start end step")
def slice_(ctx: Context, input: Tensor, dim: int = 0, start: Any = None, step: int = 1) -> Tensor:
    at = dim % len(input)
    return cut(ctx, input, at, first_of_slice(start, input.shape[at]), ctx.shape[at], step)


@row("aten.select.int")
def select(ctx: Context, input: Tensor, dim: int, index: Any) -> Tensor:
    at = dim % len(input)
    return selected(ctx, input, at, from_start(index, input.shape[at]))


@row("aten.split_with_sizes.default")
def split_with_sizes(
    ctx: Context, input: Tensor, split_sizes: Sequence[Any], dim: int = 0
) -> tuple[Tensor, ...]:
    parts, start = [], sizes.ZERO
    for given in split_sizes:
        part = sizes.size(given) if isinstance(given, int) else given
        if not isinstance(part, sympy.Expr):
            raise Refused("a part's size is computed in a way that is no size")
        parts.append(cut(ctx, input, dim, start, part))
        start = start + part
    return tuple(parts)


@row("aten.flip.default")
def flip(ctx: Context, input: Tensor, dims: Sequence[int]) -> Tensor:
    back = {d % len(input) for d in dims}
    fresh = tuple(
        tuple(ctx.axis(a.name, a.size) for a in d) if i in back else d for i, d in enumerate(input.dims)
    )
    index = [
        minus(extent(s - 1), position(d)) if i in back and d else position(d) if d else Const(0)
        for i, (d, s) in enumerate(zip(fresh, input.shape, strict=True))
    ]
    return replace(input, dims=fresh, value=input.at(*index))
