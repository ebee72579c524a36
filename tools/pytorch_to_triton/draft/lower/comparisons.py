"""Comparisons, logic, bits, selection, and the larger and smaller of two."""

from __future__ import annotations

from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, op
from pytorch_to_triton.draft.lower.row import (
    WIDTHS,
    Context,
    Operand,
    Refused,
    RowFunction,
    compared,
    mapped,
    row,
)
from pytorch_to_triton.draft.lower.row import where as chosen
from pytorch_to_triton.draft.lower.tensor import Tensor


def _comparison(fn: str) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, other: Operand) -> Tensor:
        return compared(lambda a, b: op(fn, a, b), input, other)

    return lowered


def _logic(fn: str) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, other: Operand) -> Tensor:
        return mapped(ctx, lambda a, b: op(fn, a, b), input, other)

    return lowered


def _bits(fn: str) -> RowFunction:
    def lowered(ctx: Context, input: Operand, other: Operand) -> Tensor:
        mine = fn if ctx.dtype == "bool" else f"bit_{fn}"
        return mapped(ctx, lambda a, b: op(mine, a, b), input, other)

    return lowered


for _fn in ("eq", "ne", "lt", "le", "gt", "ge"):
    row(f"aten.{_fn}.Tensor", f"aten.{_fn}.Scalar")(_comparison(_fn))

for _fn in ("and", "or", "xor"):
    row(f"aten.logical_{_fn}.default")(_logic(_fn))
    row(*(f"aten.bitwise_{_fn}.{overload}" for overload in ("Tensor", "Scalar", "Scalar_Tensor")))(_bits(_fn))


@row("aten.logical_not.default")
def logical_not(ctx: Context, input: Tensor) -> Tensor:
    return compared(lambda x: op("not", x), input)


@row("aten.bitwise_not.default")
def bitwise_not(ctx: Context, input: Tensor) -> Tensor:
    if input.dtype == "uint8":  # Triton's ~ is x ^ -1, which its interpreter has no unsigned -1 for.
        return mapped(ctx, lambda x: op("bit_xor", x, 255), input)
    return mapped(ctx, lambda x: op("not" if kind_of(x) == "bool" else "bit_not", x), input)


@row(
    "aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar",
    "aten.bitwise_left_shift.Scalar_Tensor", "aten.__lshift__.Tensor", "aten.__lshift__.Scalar",
)  # fmt: skip
def shift_left(ctx: Context, input: Operand, other: Operand) -> Tensor:
    if _is_ordinary(ctx.dtype, other):
        return mapped(ctx, lambda a, b: op(WIDTHS[ctx.dtype], op("shift_left", a, b)), input, other)
    width = _signed_width(ctx.dtype)

    def formula(a: Value, b: Value) -> Value:
        return chosen(_within(b, width), op("shift_left", a, b), 0)

    return mapped(ctx, formula, input, other)


@row(
    "aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar",
    "aten.bitwise_right_shift.Scalar_Tensor", "aten.__rshift__.Tensor", "aten.__rshift__.Scalar",
)  # fmt: skip
def shift_right(ctx: Context, input: Operand, other: Operand) -> Tensor:
    if _is_ordinary(ctx.dtype, other):
        return mapped(ctx, lambda a, b: op("shift_right", a, b), input, other)
    width = _signed_width(ctx.dtype)

    def formula(a: Value, b: Value) -> Value:
        return op("shift_right", a, chosen(_within(b, width), b, width - 1))

    return mapped(ctx, formula, input, other)


def _is_ordinary(dtype: str, shift: Operand) -> bool:
    """Whether the shift is a literal that leaves some of the bits."""
    return isinstance(shift, int) and 0 <= shift < int(dtype.lstrip("uint"))


def _signed_width(dtype: str) -> int:
    if not dtype.startswith("int"):
        raise Refused(f"it shifts {dtype} by a number that is no literal")
    return int(dtype.removeprefix("int"))


def _within(shift: Value, width: int) -> Value:
    """Whether hardware knows the shift; PyTorch defines all others."""
    return op("and", op("ge", shift, 0), op("lt", shift, width))


@row("aten.where.self")
def where(ctx: Context, condition: Tensor, input: Operand, other: Operand) -> Tensor:
    return ctx.where(condition, input, other)


@row("aten.masked_fill.Scalar")
def masked_fill(ctx: Context, input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    return ctx.where(mask, value, input)


def larger(a: Value, b: Value) -> Value:
    """NaN where either is."""
    return op({"float": "maximum", "int": "larger", "bool": "or"}[kind_of(a)], a, b)


def smaller(a: Value, b: Value) -> Value:
    """NaN where either is."""
    return op({"float": "minimum", "int": "smaller", "bool": "and"}[kind_of(a)], a, b)


@row("aten.maximum.default")
def maximum(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, larger, input, other)


@row("aten.minimum.default")
def minimum(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, smaller, input, other)


@row("aten.fmax.default")
def fmax(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, lambda a, b: op("or" if kind_of(a) == "bool" else "larger", a, b), input, other)


@row("aten.fmin.default")
def fmin(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, lambda a, b: op("and" if kind_of(a) == "bool" else "smaller", a, b), input, other)


@row("aten.clamp.default", "aten.clamp.Tensor")
def clamp(ctx: Context, input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    if min is None or max is None:
        return mapped(ctx, larger, input, min) if max is None else mapped(ctx, smaller, input, max)
    return mapped(ctx, between, input, min, max)


def between(x: Value, low: Value, high: Value) -> Value:
    """x where it is between the bounds, else the nearer one; the upper one where they are crossed."""
    literal = isinstance(low, Const) and isinstance(high, Const) and low.value <= high.value
    if kind_of(x) == "float" and literal:
        return op("clamp", x, low, high)
    return smaller(larger(x, low), high)


@row("aten.clamp_min.default")
def clamp_min(ctx: Context, input: Tensor, min: Operand) -> Tensor:
    return mapped(ctx, larger, input, min)


@row("aten.clamp_max.default")
def clamp_max(ctx: Context, input: Tensor, max: Operand) -> Tensor:
    return mapped(ctx, smaller, input, max)
