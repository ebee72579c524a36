"""Operators that put tensors side by side, pad or repeat them, or look along them in another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import below, every, extent, minus, plus, remainder, times
from pytorch_to_triton.draft.ir.sizes import ONE, ZERO, Size, equal
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.ir.values import Const, Number, Value, in_kind, named, op
from pytorch_to_triton.draft.lower.row import Context, Refused, cast, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, guarded, position, reshaped
from pytorch_to_triton.draft.lower.views import cut

MOST_JOINED = 8
"""Tensors side by side in a kernel, which tests each element for all of them ..."""
MOST_STACKED = 16
"""... and those of them that have one place each, as the elements of a 4x4 matrix."""


def as_size(given: int | Size) -> Size:
    """A number or size as a size. Raises Refused for what is computed in another way."""
    if not isinstance(given, int | sympy.Expr):
        raise Refused("one of its numbers is computed in a way that is no size")
    return sizes.size(given) if isinstance(given, int) else given


def between(index: Value, start: Size, end: Size, size: Size) -> Value:
    """Whether start <= index < end, for an index below `size`."""
    if sizes.equal(start + 1, end):
        return op("eq", index, extent(start))
    low = None if start == ZERO else index >= extent(start)
    high = None if sizes.equal(end, size) else index < extent(end)
    if low is None or high is None:
        return low or high or Const(True)
    return low & high


@row("aten.cat.default")
def cat(ctx: Context, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return joined(ctx, tensors, dim % len(ctx.shape))


def joined(ctx: Context, tensors: Sequence[Tensor], at: int) -> Tensor:
    """The tensors one behind the other in dimension `at`, in the dtype of the call.

    Raises Refused for very many, which a copy of each joins faster.
    """
    most = MOST_STACKED if all(t.shape[at] == ONE for t in tensors) else MOST_JOINED
    if len(tensors) > most:
        raise Refused(f"it joins more than {most} tensors")
    parts = [cast(t, ctx.dtype) for t in tensors if t.shape != (ZERO,)]
    parts = [t for t in parts if t.shape[at] != ZERO] or parts
    if len(parts) < 2:
        return parts[0] if parts else cast(tensors[0], ctx.dtype)
    hint = next((p.dims[at][0].name for p in parts if p.dims[at]), "i")
    along = (ctx.axis(hint, ctx.shape[at]),)
    dims = (*parts[0].dims[:at], along, *parts[0].dims[at + 1 :])
    return ctx.tensor(dims, _chosen(parts, tuple(map(position, dims)), at))


def _chosen(parts: Sequence[Tensor], index: Sequence[Value], at: int) -> Value:
    """The element of the part that the index along `at` falls into; each part is read only there."""
    along, whole = index[at], ZERO + sum(p.shape[at] for p in parts)
    pieces: list[tuple[Value, Value]] = []
    start = ZERO
    for part in parts:
        end = start + part.shape[at]
        inside = between(along, start, end, whole)
        value = part.at(*index[:at], minus(along, extent(start)), *index[at + 1 :])
        first = inside if part.shape[at] == ONE else along < extent(end)
        pieces.append((first, guarded(value, inside)))
        start = end
    _, found = pieces.pop()
    for first, value in reversed(pieces):
        found = op("where", first, value, found)
    return found


@row("aten.roll.default")
def roll(ctx: Context, input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    shifts, dims = ([g] if isinstance(g, int | sympy.Expr) else list(g) for g in (shifts, dims))
    if not dims:
        flat = reshaped(ctx.names, input, (sizes.product(input.shape),))
        return reshaped(ctx.names, _rolled(flat, 0, as_size(shifts[0])), input.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        input = _rolled(input, dim % len(input), as_size(shift)) if len(input) else input
    return input


def _rolled(x: Tensor, at: int, shift: Size) -> Tensor:
    size = x.shape[at]
    if size in (ZERO, ONE):
        return x
    by = size - shift if below(ONE, shift) and below(shift, size) else sizes.Mod(-shift, size)
    index = list(x.indices)
    index[at] = remainder(plus(index[at], extent(by)), size)
    return replace(x, value=x.at(*index))


@row("aten.repeat.default")
def repeat(ctx: Context, input: Tensor, repeats: Sequence[Any]) -> Tensor:
    padded: tuple[Dim, ...] = ((),) * (len(repeats) - len(input)) + input.dims
    again = (ctx.dim("r", as_size(n)) for n in repeats)  # Axes along which nothing changes.
    return replace(input, dims=tuple(r + d for r, d in zip(again, padded, strict=True)))


@row("aten.diagonal.default")
def diagonal(ctx: Context, input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    down, right = dim1 % len(input), dim2 % len(input)
    new = ctx.dim("d", ctx.shape[-1])
    index = list(input.indices)
    index[down] = plus(position(new), Const(max(-offset, 0)))
    index[right] = plus(position(new), Const(max(offset, 0)))
    kept = tuple(d for i, d in enumerate(input.dims) if i not in (down, right))
    return replace(input, dims=(*kept, new), value=input.at(*index))


def zeros(ctx: Context, like: Tensor) -> Tensor:
    """Zeros in the shape of the call's result, of the kind of another tensor."""
    return ctx.tensor(ctx.names.dims(ctx.shape), Const(in_kind(0, like.kind)))


def with_diagonal(x: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """x, with the last dimension of `src` along a diagonal of two dimensions."""
    down, right = dim1 % len(x), dim2 % len(x)
    i, j = x.indices[down], x.indices[right]
    hit = op("eq", plus(i, Const(offset)), j) if offset >= 0 else op("eq", i, plus(j, Const(-offset)))
    others = [place for at, place in enumerate(x.indices) if at not in (down, right)]
    value = guarded(src.at(*others, i if offset >= 0 else j), hit)
    return replace(x, value=op("where", hit, value, x.value))


@row("aten.diagonal_scatter.default")
def diagonal_scatter(
    ctx: Context, input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    return with_diagonal(input, src, offset, dim1, dim2)


@row("aten.unfold.default")
def unfold(ctx: Context, input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if not len(input):
        return cut(ctx, replace(input, dims=((),)), 0, ZERO, sizes.size(size))
    at = dimension % len(input)
    window = ctx.dim("w", ctx.shape[at])
    tap = ctx.dim("k", sizes.size(size))
    index = list(input.indices)
    index[at] = plus(times(position(window), sizes.size(step)), position(tap))
    dims = (*input.dims[:at], window, *input.dims[at + 1 :], tap)
    return replace(input, dims=dims, value=input.at(*index))


Padding = Sequence[int | Size]
"""Before and after the last dimension, then before and after the one before it, ..."""


@row("aten.constant_pad_nd.default")
def constant_pad(ctx: Context, input: Tensor, pad: Padding, value: Number = 0) -> Tensor:
    if isinstance(value, Value):
        raise Refused("it pads with a number that is an argument")
    pairs, outs = around(input, pad), new_dims(ctx, input, pad)
    index = [shifted(position(o), before) for o, (before, _) in zip(outs, pairs, strict=True)]
    conditions: list[Value] = []
    for at, (before, after), size in zip(index, pairs, input.shape, strict=True):
        conditions += [at >= 0] * grows(before) + [at < extent(size)] * grows(after)
    inside = every(conditions)
    if inside is None:
        return ctx.tensor(outs, input.at(*index))
    return ctx.tensor(outs, input.where(index, named("inside", inside), in_kind(value, input.kind)))


def around(x: Tensor, padding: Padding) -> list[tuple[Size, Size]]:
    """The padding before and after each dimension."""
    given = [sized(n) if isinstance(n, int) else n for n in padding]
    pairs = list(zip(given[::2], given[1::2], strict=True))[::-1]
    return [(ZERO, ZERO)] * (len(x) - len(pairs)) + pairs


def new_dims(ctx: Context, x: Tensor, padding: Padding) -> list[Dim]:
    """The dimensions of the result; those without padding stay as they are."""
    return [
        own if equal(before, ZERO) and equal(after, ZERO) else ctx.dim(own[0].name if own else "i", size)
        for own, size, (before, after) in zip(x.dims, ctx.shape, around(x, padding), strict=True)
    ]


def grows(padding: Size) -> bool:
    """Whether it may be more than 0."""
    return not padding.is_nonpositive


def shifted(at: Value, before: Size) -> Value:
    """The position without the padding before it; with a negative one, after what is cut off."""
    return plus(at, extent(-before)) if before.is_nonpositive else minus(at, extent(before))
