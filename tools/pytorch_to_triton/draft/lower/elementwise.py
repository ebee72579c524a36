"""Functions of one number: casts, transcendental ones, activations, rounding, signs, what becomes of NaN."""

from __future__ import annotations

import math
from dataclasses import replace

from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, op
from pytorch_to_triton.draft.lower.arithmetic import between
from pytorch_to_triton.draft.lower.row import (
    WIDTHS,
    Context,
    Formula,
    Operand,
    Refused,
    cast,
    compared,
    is_literal,
    is_whole,
    mapped,
    register_formulas,
    row,
    scaled,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor
from pytorch_to_triton.graph.dtype_rules import FINFO

NAMESAKES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "erf", "erfc",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid", "silu", "mish", "lgamma", "erfinv", "i0", "neg", "abs",
    "square",
)  # fmt: skip
"""Operators that are a row of FUNCTIONS under their own name."""


def _called(fn: str) -> Formula:
    return lambda input: op(fn, input)


def _of_floats(fn: str, otherwise: Formula) -> Formula:
    """A function of floats, and what it is of other kinds."""
    return lambda input: op(fn, input) if kind_of(input) == "float" else otherwise(input)


def _sign(input: Value) -> Value:
    kind = kind_of(input)
    return input if kind == "bool" else op("sign" if kind == "float" else "sign_int", input)


def _softplus(x: Value, beta: Value, threshold: Value) -> Value:
    if is_literal(beta, 1) and is_literal(threshold, 20):
        return op("softplus", x)
    steep = scaled(x, beta)
    curve = op("log1p", op("exp", steep))
    return where(steep > threshold, x, curve if is_literal(beta, 1) else curve / beta)


def _log_sigmoid(input: Value) -> Value:
    """Without overflow."""
    return op("minimum", input, 0.0) - op("log1p", op("exp", -op("abs", input)))


def _elu(x: Value, alpha: Value, scale: Value, input_scale: Value) -> Value:
    low = scaled(alpha, scale)
    if isinstance(alpha, Const) and isinstance(scale, Const):
        low = Const(alpha.value * scale.value)
    return where(x > 0.0, scaled(x, scale), scaled(op("expm1", scaled(x, input_scale)), low))


register_formulas({f"{name}.default": _called(name) for name in NAMESAKES})
register_formulas(
    {f"{name}.default": _of_floats(name, lambda x: x) for name in ("floor", "ceil", "round", "trunc")}
)
register_formulas({
    "sign.default": _sign,
    "angle.default": (
        lambda input: where(op("is_nan", input), input, where(input < 0.0, math.pi, 0.0))
    ),
    "special_ndtri.default": _called("normcdfinv"),
    "special_erfcx.default": _called("erfcx"),
    "relu.default": _of_floats("relu", lambda x: op("larger", x, 0)),
    "hardtanh.default": lambda input, min_val=-1, max_val=1: between(input, min_val, max_val),
    "softplus.default": lambda input, beta=1, threshold=20: _softplus(input, beta, threshold),
    "log_sigmoid.default": _log_sigmoid,
    "leaky_relu.default": (
        lambda input, negative_slope=0.01: where(input > 0.0, input, negative_slope * input)
    ),
    "elu.default": (
        lambda input, alpha=1, scale=1, input_scale=1: _elu(input, alpha, scale, input_scale)
    ),
})  # fmt: skip
register_formulas({
    "logical_not.default": _called("not"),
    "isnan.default": _of_floats("is_nan", lambda _: False),
    "isinf.default": _of_floats("is_inf", lambda _: False),
    "signbit.default": (
        lambda input: op("copysign", 1.0, input) < 0.0
        if kind_of(input) == "float"
        else input < 0
    ),
}, compared)  # fmt: skip


@row("aten.gelu.default")
def gelu(ctx: Context, input: Tensor, approximate: str = "none") -> Tensor:
    return mapped(ctx, lambda x: op("gelu_tanh" if approximate == "tanh" else "gelu", x), input)


@row("aten.round.decimals")
def round_decimals(ctx: Context, input: Tensor, decimals: int) -> Tensor:
    if is_whole(input):
        return input
    ten = 10.0 ** abs(decimals)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return mapped(ctx, lambda x: op(back, op("round", op(there, x, ten)), ten), input)


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
    largest = FINFO["max"][ctx.dtype]

    def formula(x: Value, of_nan: Value, top: Value, bottom: Value) -> Value:
        finite = where(op("eq", x, -math.inf), bottom, where(op("eq", x, math.inf), top, x))
        return where(op("is_nan", x), of_nan, finite)

    given = (0.0 if nan is None else nan, largest if posinf is None else posinf)
    return mapped(ctx, formula, input, *given, -largest if neginf is None else neginf)


@row("aten._to_copy.default", arguments="input dtype layout device pin_memory non_blocking memory_format")
def to(ctx: Context, input: Tensor) -> Tensor:
    if ctx.dtype not in WIDTHS:
        raise Refused(f"it casts to {ctx.dtype}")
    return cast(input, ctx.dtype)


@row("aten.frexp.Tensor")
def frexp(ctx: Context, input: Tensor) -> tuple[Tensor, Tensor]:
    """A fraction from 0.5 to 1 and the power of 2 by it; 0, NaN and the infinities as they are, and 0."""
    x = input.value
    is_itself = op("eq", x, 0.0) | op("is_nan", x) | op("is_inf", x)
    power = where(is_itself, 0, op("ilogb", x) + 1)
    fraction = where(is_itself, x, op("ldexp", x, 0 - power))
    return replace(input, value=fraction), replace(input, value=power, dtype="int32")
