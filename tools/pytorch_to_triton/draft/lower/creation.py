"""Tensors from nothing: ranges, constants, triangles. Where they would lie is not a kernel's question."""

from __future__ import annotations

from typing import Any

from pytorch_to_triton.draft.ir.indices import plus
from pytorch_to_triton.draft.ir.values import Const, kind_of_dtype, op
from pytorch_to_triton.draft.lower.formulas import where
from pytorch_to_triton.draft.lower.row import WIDTHS, Context, Operand, Refused, as_kind, number, row
from pytorch_to_triton.draft.lower.tensor import Tensor, position

PLACE = "dtype layout device pin_memory"
"""Arguments of all that makes a tensor."""


def filled(ctx: Context, value: Operand) -> Tensor:
    """The result's shape, with one value everywhere."""
    dtype = ctx.dtype
    if dtype not in WIDTHS:
        raise Refused(f"it makes {dtype}")
    kind = kind_of_dtype(dtype)
    fill = Const(bool(value)) if kind == "bool" and isinstance(value, int | float) else number(value)
    return Tensor(ctx.names.dims(ctx.shape), as_kind(fill, kind), dtype)


@row("aten.full.default", arguments=f"size fill_value {PLACE}")
@row("aten.full_like.default", arguments=f"input fill_value {PLACE} memory_format")
def full(ctx: Context, fill_value: Operand) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.scalar_tensor.default", arguments=f"s {PLACE}")
def scalar_tensor(ctx: Context, s: Operand) -> Tensor:
    return filled(ctx, s)


@row("aten.arange.start_step", arguments=f"start end step {PLACE}")
def arange(ctx: Context, start: Operand = 0, step: Operand = 1) -> Tensor:
    dims = ctx.names.dims(ctx.shape, "i")
    kind = kind_of_dtype(ctx.dtype)
    found = as_kind(position(dims[0]), kind)
    if step != 1:
        found = op("mul", found, as_kind(number(step), kind))
    if start != 0:
        found = op("add", found, as_kind(number(start), kind))
    return Tensor(dims, found, ctx.dtype)


@row("aten.tril.default")
def tril(ctx: Context, input: Tensor, diagonal: Any = 0) -> Tensor:
    return _triangle(input, "ge", diagonal)


@row("aten.triu.default")
def triu(ctx: Context, input: Tensor, diagonal: Any = 0) -> Tensor:
    return _triangle(input, "le", diagonal)


def _triangle(x: Tensor, compare: str, diagonal: Any) -> Tensor:
    """x where its row, moved by the diagonal, compares so with its column, else 0."""
    row_at, column = (position(d) for d in x.dims[-2:])
    if isinstance(diagonal, int) and diagonal < 0:
        column = plus(column, Const(-diagonal))
    else:
        row_at = plus(row_at, number(diagonal))
    kept = where(op(compare, row_at, column), x.value, as_kind(Const(False), x.kind))
    return Tensor(x.dims, kept, x.dtype)


@row("aten.one_hot.default")
def one_hot(ctx: Context, input: Tensor, num_classes: Any = -1) -> Tensor:
    if num_classes == -1:
        raise Refused("how many classes there are depends on the values")
    dim = ctx.dim("c", ctx.shape[-1])
    found = op("eq", input.value, position(dim))
    return Tensor((*input.dims, dim), as_kind(found, "int"), ctx.dtype)
