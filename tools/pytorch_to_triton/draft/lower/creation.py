"""Tensors from nothing: ranges, constants, triangles. Where they would lie is not a kernel's question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytorch_to_triton.draft.ir.indices import minus, plus
from pytorch_to_triton.draft.ir.values import Const, kind_of_dtype, op
from pytorch_to_triton.draft.lower.formulas import where
from pytorch_to_triton.draft.lower.row import WIDTHS, Context, Operand, Refused, as_kind, number, row
from pytorch_to_triton.draft.lower.tensor import Tensor, position


def filled(ctx: Context, value: Operand) -> Tensor:
    """The result's shape, with one value everywhere."""
    dtype = ctx.dtype
    if dtype not in WIDTHS:
        raise Refused(f"it makes {dtype}")
    kind = kind_of_dtype(dtype)
    fill = Const(bool(value)) if kind == "bool" and isinstance(value, int | float) else number(value)
    return Tensor(ctx.names.dims(ctx.shape), as_kind(fill, kind), dtype)


@row("aten.full.default")
def full(
    ctx: Context,
    size: Sequence[Any],
    fill_value: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.full_like.default")
def full_like(
    ctx: Context,
    input: Tensor,
    fill_value: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.new_full.default")
def new_full(
    ctx: Context,
    input: Tensor,
    size: Sequence[Any],
    fill_value: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.scalar_tensor.default")
def scalar_tensor(
    ctx: Context,
    s: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return filled(ctx, s)


def _constant(name: str, value: int) -> None:
    """`zeros` and its kin, or those of `ones`."""

    @row(f"aten.{name}.default")
    def of_size(
        ctx: Context,
        size: Sequence[Any],
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Tensor:
        return filled(ctx, value)

    @row(f"aten.{name}_like.default")
    def like(
        ctx: Context,
        input: Tensor,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> Tensor:
        return filled(ctx, value)

    @row(f"aten.new_{name}.default")
    def new(
        ctx: Context,
        input: Tensor,
        size: Sequence[Any],
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Tensor:
        return filled(ctx, value)


_constant("zeros", 0)
_constant("ones", 1)


@row("aten.arange.default")
def arange(
    ctx: Context,
    end: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return _range(ctx, 0, 1)


@row("aten.arange.start")
def arange_from(
    ctx: Context,
    start: Operand,
    end: Operand,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return _range(ctx, start, 1)


@row("aten.arange.start_step")
def arange_by(
    ctx: Context,
    start: Operand,
    end: Operand,
    step: Operand = 1,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return _range(ctx, start, step)


def _range(ctx: Context, start: Operand, step: Operand) -> Tensor:
    dims = ctx.names.dims(ctx.shape, "i")
    kind = kind_of_dtype(ctx.dtype)
    found = as_kind(position(dims[0]), kind)
    if step != 1:
        found = op("mul", found, as_kind(number(step), kind))
    if start != 0:
        found = op("add", found, as_kind(number(start), kind))
    return Tensor(dims, found, ctx.dtype)


@row("aten.linspace.default")
def linspace(
    ctx: Context,
    start: Any,
    end: Any,
    steps: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
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


@row("aten.eye.default")
def eye(
    ctx: Context,
    n: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return _diagonal(ctx)


@row("aten.eye.m")
def eye_m(
    ctx: Context,
    n: Any,
    m: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    return _diagonal(ctx)


def _diagonal(ctx: Context) -> Tensor:
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
