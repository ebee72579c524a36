"""Paddings: constant, or with the elements that mirror, repeat or continue those inside."""

from __future__ import annotations

from collections.abc import Sequence

from pytorch_to_triton.draft.ir.indices import every, extent, minus, plus
from pytorch_to_triton.draft.ir.sizes import ZERO, Size, equal
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.ir.values import Number, Value, named, op
from pytorch_to_triton.draft.lower.row import Context, Refused, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position

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
        conditions += [op("ge", at, 0)] * grows(before) + [op("lt", at, extent(size))] * grows(after)
    inside = every(conditions)
    if inside is None:
        return ctx.tensor(outs, input.at(*index))
    filled = {"float": float, "int": int, "bool": bool}[input.kind](value)
    return ctx.tensor(outs, input.where(index, named("inside", inside), filled))


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
