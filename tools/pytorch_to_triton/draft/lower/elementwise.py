"""Functions of one number: casts, transcendental ones, rounding, signs, and what becomes of NaN."""

from __future__ import annotations

import math

from pytorch_to_triton.draft.ir.values import Value, kind_of, op
from pytorch_to_triton.draft.lower.row import (
    WIDTHS,
    Context,
    Formula,
    Operand,
    Refused,
    RowFunction,
    cast,
    compared,
    is_whole,
    mapped,
    row,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor

FLOATS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "erf", "erfc",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid", "silu", "mish", "hardsigmoid", "hardswish", "lgamma", "erfinv", "i0",
)  # fmt: skip
"""Operators that are a row of FUNCTIONS under their own name and give floats."""


def unary(formula: Formula) -> RowFunction:
    """A row whose operator takes one tensor."""

    def lowered(ctx: Context, input: Tensor) -> Tensor:
        return mapped(ctx, formula, input)

    return lowered


def _called(fn: str) -> Formula:
    return lambda x: op(fn, x)


for _name in (*FLOATS, "neg", "abs", "square"):
    row(f"aten.{_name}.default")(unary(_called(_name)))

for _name in ("floor", "ceil", "round", "trunc"):
    row(f"aten.{_name}.default")(unary(lambda x, fn=_name: op(fn, x) if kind_of(x) == "float" else x))


@row("aten.round.decimals")
def round_decimals(ctx: Context, input: Tensor, decimals: int) -> Tensor:
    if is_whole(input):
        return input
    ten = 10.0 ** abs(decimals)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return mapped(ctx, lambda x: op(back, op("round", op(there, x, ten)), ten), input)


@row("aten.sign.default")
def sign(ctx: Context, input: Tensor) -> Tensor:
    if ctx.dtype == "bool":
        return input
    return mapped(ctx, lambda x: op("sign" if kind_of(x) == "float" else "sign_int", x), input)


@row("aten.signbit.default")
def signbit(ctx: Context, input: Tensor) -> Tensor:
    return compared(
        lambda x: op("lt", op("copysign", 1.0, x), 0.0) if kind_of(x) == "float" else op("lt", x, 0), input
    )


@row("aten.angle.default")
def angle(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda x: where(op("is_nan", x), x, where(op("lt", x, 0.0), math.pi, 0.0)), input)


@row("aten.special_ndtri.default")
def ndtri(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda p: op("normcdfinv", p), input)


@row("aten.ldexp.Tensor")
def ldexp(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, lambda x, power: op("mul", x, op("exp2", power)), input, other)


@row("aten.isnan.default")
def isnan(ctx: Context, input: Tensor) -> Tensor:
    return compared(lambda x: op("is_nan", x) if kind_of(x) == "float" else False, input)


@row("aten.isinf.default")
def isinf(ctx: Context, input: Tensor) -> Tensor:
    return compared(lambda x: op("is_inf", x) if kind_of(x) == "float" else False, input)


LARGEST = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}  # fmt: skip


@row("aten.nan_to_num.default")
def nan_to_num(
    ctx: Context,
    input: Tensor,
    nan: Operand | None = None,
    posinf: Operand | None = None,
    neginf: Operand | None = None,
) -> Tensor:
    if is_whole(input):
        return input
    largest = LARGEST[ctx.dtype]

    def formula(x: Value, of_nan: Value, top: Value, bottom: Value) -> Value:
        finite = where(op("eq", x, -math.inf), bottom, where(op("eq", x, math.inf), top, x))
        return where(op("is_nan", x), of_nan, finite)

    given = (0.0 if nan is None else nan, largest if posinf is None else posinf)
    return mapped(ctx, formula, input, *given, -largest if neginf is None else neginf)


def _of_two(fn: str) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, other: Operand) -> Tensor:
        return mapped(ctx, lambda a, b: op(fn, a, b), input, other)

    return lowered


row("aten.atan2.default")(_of_two("atan2"))
row("aten.hypot.default")(_of_two("hypot"))
row("aten.copysign.Tensor", "aten.copysign.Scalar")(_of_two("copysign"))


@row("aten._to_copy.default", arguments="input dtype layout device pin_memory non_blocking memory_format")
def to(ctx: Context, input: Tensor) -> Tensor:
    if ctx.dtype not in WIDTHS:
        raise Refused(f"it casts to {ctx.dtype}")
    return cast(input, ctx.dtype)
