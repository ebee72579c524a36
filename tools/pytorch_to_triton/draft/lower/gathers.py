"""Operators that read where other tensors say: their index tensors' values become indices of loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.indices import bound, extent, plus
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.reductions import running
from pytorch_to_triton.draft.lower.row import Context, Refused, cast, compared, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, broadcast, position


def wrapped(index: Value, size: Size) -> Value:
    """An index that may count from the end, as one from the start."""
    if bound(index) is not None:
        return index
    return op("where", index < 0, plus(index, extent(size)), index)


def picked(ctx: Context, x: Tensor, at: int, index: Tensor) -> Tensor:
    """One dimension's elements where `index` says; its dimensions stand in place of that one."""
    x = ctx.apart(x, index.dims)
    places = [*x.indices[:at], index.value, *x.indices[at + 1 :]]
    return replace(x, dims=(*x.dims[:at], *index.dims, *x.dims[at + 1 :]), value=x.at(*places))


@row("aten.embedding.default", arguments="weight indices padding_idx scale_grad_by_freq sparse")
def embedding(ctx: Context, weight: Tensor, indices: Tensor) -> Tensor:
    return picked(ctx, weight, 0, indices)  # The options are the gradient's.


@row("aten.index_select.default")
def index_select(ctx: Context, input: Tensor, dim: int, index: Tensor) -> Tensor:
    if not input.dims:
        return input
    if not index.dims:
        index = replace(index, dims=((),))
    return picked(ctx, input, dim % len(input), index)


@row("aten.gather.default", arguments="input dim index sparse_grad")
def gather(ctx: Context, input: Tensor, dim: int, index: Tensor) -> Tensor:
    if not input.dims or not index.dims:
        return replace(input, dims=index.dims, value=input.at(*[index.value] * len(input)))
    places = list(index.indices)
    places[dim % len(input)] = index.value
    return replace(input, dims=index.dims, value=input.at(*places))


@row("aten.bucketize.Tensor", arguments="input boundaries out_int32 right")
def bucketize(ctx: Context, input: Tensor, boundaries: Tensor, *, right: bool = False) -> Tensor:
    return _places(ctx, boundaries, input, right=right)


@row("aten.searchsorted.Tensor", arguments="sorted_sequence input out_int32 right side sorter")
def searchsorted(
    ctx: Context,
    sorted_sequence: Tensor,
    input: Tensor,
    *,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        sorted_sequence = gather(ctx, sorted_sequence, -1, sorter)
    return _places(ctx, sorted_sequence, input, right=right or side == "right")


def _places(ctx: Context, boundaries: Tensor, x: Tensor, *, right: bool) -> Tensor:
    """How many boundaries lie before each element; with `right`, those that equal it too. NaN is the last."""
    boundaries = ctx.apart(boundaries, x.dims)
    *lead, along = boundaries.dims
    wide = replace(boundaries, dims=(*lead, (), along) if lead else (along,))
    column = replace(x, dims=(*x.dims, ()))
    before = compared(ctx, lambda b, v: op("not", op("gt" if right else "ge", b, v)), wide, column)
    return ctx.reduce(SUM, cast(before, ctx.dtype), (len(before) - 1,))


@row("aten.repeat_interleave.Tensor", arguments="repeats output_size")
def repeat_interleave(ctx: Context, repeats: Tensor) -> Tensor:
    """Which element each output is one of: so many end before it."""
    ends = ctx.stored("ends", running(ctx, SUM, cast(repeats, ctx.dtype), 0))
    outputs = ctx.names.dims(ctx.shape, "i")
    return _places(ctx, ends, Tensor(outputs, position(outputs[0]), ctx.dtype), right=True)


def indexed_dims(indices: Sequence[Tensor | None]) -> dict[int, Tensor]:
    """Which dimensions are indexed, by what. Raises Refused for masks."""
    given = {at: i for at, i in enumerate(indices) if i is not None}
    if any(i.dtype in ("bool", "uint8") for i in given.values()):
        raise Refused("how much a mask selects is only known from the data")
    return given


def arranged(x: Tensor, new: Sequence[Dim], given: Sequence[int]) -> tuple[Dim, ...]:
    """What `x[...]` has for dimensions: index tensors' where the indexed ones stood, in front if apart."""
    kept = tuple(d for i, d in enumerate(x.dims) if i not in given)
    adjacent = max(given) - min(given) + 1 == len(given)
    place = min(given) if adjacent else 0
    return (*kept[:place], *new, *kept[place:])


@row("aten.index.Tensor")
def index(ctx: Context, input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    given = indexed_dims(indices)
    if not given:
        return input
    new, values = broadcast(list(given.values()))
    x = ctx.apart(input, new)
    places = list(x.indices)
    for at, value in zip(given, values, strict=True):
        places[at] = wrapped(value, x.shape[at])
    return replace(x, dims=arranged(x, new, list(given)), value=x.at(*places))
