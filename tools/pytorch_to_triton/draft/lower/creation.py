"""Tensors from nothing: ranges, constants, triangles. Where they would lie is not a kernel's question."""

from __future__ import annotations

from typing import Any

from pytorch_to_triton.draft.ir.indices import minus, plus
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
@row("aten.new_full.default", arguments=f"input size fill_value {PLACE}")
def full(ctx: Context, fill_value: Operand) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.scalar_tensor.default", arguments=f"s {PLACE}")
def scalar_tensor(ctx: Context, s: Operand) -> Tensor:
    return filled(ctx, s)


@row("aten.zeros.default", arguments=f"size {PLACE}")
@row("aten.zeros_like.default", arguments=f"input {PLACE} memory_format")
@row("aten.new_zeros.default", arguments=f"input size {PLACE}")
def zeros(ctx: Context) -> Tensor:
    return filled(ctx, 0)


@row("aten.ones.default", arguments=f"size {PLACE}")
@row("aten.ones_like.default", arguments=f"input {PLACE} memory_format")
@row("aten.new_ones.default", arguments=f"input size {PLACE}")
def ones(ctx: Context) -> Tensor:
    return filled(ctx, 1)


@row("aten.arange.default", arguments=f"end {PLACE}")
@row("aten.arange.start", arguments=f"start end {PLACE}")
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


@row("aten.linspace.default", arguments=f"start end steps {PLACE}")
def linspace(ctx: Context, start: Any, end: Any, steps: Any) -> Tensor:
    """From the nearer end, so that both are met exactly."""
    if (
        not all(isinstance(x, int | float) for x in (start, end, steps))
        or kind_of_dtype(ctx.dtype) != "float"
    ):
        raise Refused("its ends are no literals, or it makes whole numbers")
    dims = ctx.names.dims(ctx.shape, "i")
    if not dims[0]:
        return Tensor(dims, Const(float(start)), ctx.dtype)
    at, step = position(dims[0]), (end - start) / (steps - 1)
    up = op("add", op("mul", as_kind(at, "float"), step), float(start))
    down = op("sub", float(end), op("mul", as_kind(minus(Const(steps - 1), at), "float"), step))
    return Tensor(dims, where(op("lt", at, steps // 2), up, down), ctx.dtype)


@row("aten.eye.default", arguments=f"n {PLACE}")
@row("aten.eye.m", arguments=f"n m {PLACE}")
def eye(ctx: Context) -> Tensor:
    dims = ctx.names.dims(ctx.shape)
    found = op("eq", *map(position, dims))
    return Tensor(dims, as_kind(found, kind_of_dtype(ctx.dtype)), ctx.dtype)


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
