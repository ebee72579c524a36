"""Functions of one number: transcendental ones, rounding, signs, and what becomes of NaN."""

from __future__ import annotations

import math

from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, op
from pytorch_to_triton.draft.lower.formulas import Formula, compared, is_whole, mapped, where
from pytorch_to_triton.draft.lower.row import Context, Operand, RowFunction, row
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


@row("aten.frac.default")
def frac(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda x: op("sub", x, op("trunc", x)), input)


@row("aten.sign.default", "aten.sgn.default")
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


@row("aten.isfinite.default")
def isfinite(ctx: Context, input: Tensor) -> Tensor:
    return compared(lambda x: op("lt", op("abs", x), math.inf) if kind_of(x) == "float" else True, input)


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


@row("aten.logit.default")
def logit(ctx: Context, input: Tensor, eps: float | None = None) -> Tensor:
    def formula(x: Value) -> Value:
        p = x if eps is None else op("clamp", x, eps, 1.0 - eps)
        return op("log", op("div", p, op("sub", 1.0, p)))

    return mapped(ctx, formula, input)


@row("aten.sinc.default")
def sinc(ctx: Context, input: Tensor) -> Tensor:
    def formula(x: Value) -> Value:
        angle = op("mul", x, math.pi)
        return where(op("eq", x, 0.0), 1.0, op("div", op("sin", angle), angle))

    return mapped(ctx, formula, input)


@row("aten.deg2rad.default")
def deg2rad(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda x: op("mul", x, math.pi / 180), input)


@row("aten.rad2deg.default")
def rad2deg(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda x: op("mul", x, 180 / math.pi), input)


def _of_two(fn: str) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, other: Operand) -> Tensor:
        return mapped(ctx, lambda a, b: op(fn, a, b), input, other)

    return lowered


row("aten.atan2.default")(_of_two("atan2"))
row("aten.hypot.default")(_of_two("hypot"))
row("aten.copysign.Tensor", "aten.copysign.Scalar")(_of_two("copysign"))


@row("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
def xlogy(ctx: Context, input: Operand, other: Operand) -> Tensor:
    return mapped(ctx, x_log_y, input, other)


def x_log_y(x: Value, y: Value) -> Value:
    """x log(y), which is 0 where x is, but for a NaN in y."""
    product = where(op("eq", x, 0.0), 0.0, op("mul", x, op("log", y)))
    if isinstance(y, Const):
        return product
    return where(op("is_nan", y), math.nan, product)


@row("aten.logaddexp.default")
def logaddexp(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, lambda a, b: _log_of_sum(a, b, "exp", 1.0), input, other)


@row("aten.logaddexp2.default")
def logaddexp2(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return mapped(ctx, lambda a, b: _log_of_sum(a, b, "exp2", 1 / math.log(2)), input, other)


def _log_of_sum(a: Value, b: Value, exp: str, unit: float) -> Value:
    """From the larger one, whose power could overflow; two equal infinities have no difference."""
    apart = op("log1p", op(exp, op("neg", op("abs", op("sub", a, b)))))
    total = op("add", op("maximum", a, b), apart if unit == 1.0 else op("mul", apart, unit))
    return where(op("and", op("is_inf", a), op("eq", a, b)), a, total)
