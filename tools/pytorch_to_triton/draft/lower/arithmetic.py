"""Sums, products, quotients, remainders and powers."""

from __future__ import annotations

from typing import Any

from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, kind_of_dtype, op
from pytorch_to_triton.draft.lower.row import (
    Context,
    Operand,
    Refused,
    is_literal,
    mapped,
    row,
    scaled,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor


@row("aten.add.Tensor", "aten.add.Scalar")
def add(ctx: Context, input: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    if ctx.dtype == "bool":
        if alpha != 1:
            raise Refused("it scales bools")
        return mapped(ctx, lambda a, b: op("or", a, b), input, other)
    return mapped(ctx, lambda a, b, k: op("add", a, scaled(b, k)), input, other, alpha)


@row("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ctx: Context, input: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    return mapped(ctx, lambda a, b, k: op("sub", a, scaled(b, k)), input, other, alpha)


@row("aten.rsub.Scalar")
def rsub(ctx: Context, input: Tensor, other: Operand, alpha: Operand = 1) -> Tensor:
    return mapped(ctx, lambda a, b, k: op("sub", b, scaled(a, k)), input, other, alpha)


@row("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ctx: Context, input: Tensor, other: Operand) -> Tensor:
    fn = "and" if ctx.dtype == "bool" else "mul"
    return mapped(ctx, lambda a, b: op(fn, a, b), input, other)


@row("aten.div.Tensor", "aten.div.Scalar")
def div(ctx: Context, input: Tensor, other: Operand) -> Tensor:
    if ctx.dtype != "float64" and isinstance(other, int | float) and SMALLEST <= abs(other) <= 1 / SMALLEST:
        return mapped(ctx, lambda a, b: op("div_literal", a, b), input, other)
    return mapped(ctx, lambda a, b: op("div", a, b), input, other)


SMALLEST = 2.0**-126
"""Of literals that float32 has a reciprocal of: PyTorch multiplies by it on a GPU."""


@row("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(ctx: Context, input: Tensor, other: Operand, rounding_mode: str | None) -> Tensor:
    match rounding_mode:
        case "floor":
            return mapped(ctx, floor_quotient, input, other)
        case "trunc":
            return mapped(ctx, _whole_quotient, input, other)
    return div(ctx, input, other)


def _whole_quotient(a: Value, b: Value) -> Value:
    return op("trunc_div_int", a, b) if kind_of(a) == "int" else op("trunc", op("div", a, b))


def floor_quotient(a: Value, b: Value) -> Value:
    """Python's a // b. Of floats: from the remainder, as floor(a / b) would be off where a / b rounds up."""
    if kind_of(a) != "float":
        return op("floordiv_signed", a, b)
    rest = op("fmod", a, b)
    quotient = op("div", op("sub", a, rest), b)
    whole = op("round", where(_turns(rest, b), op("sub", quotient, 1.0), quotient))
    if isinstance(b, Const) and b.value != 0:
        return whole
    return where(op("eq", b, 0.0), op("div", a, b), whole)


def _turns(rest: Value, b: Value) -> Value:
    """Whether what C leaves over has not the divisor's sign."""
    if isinstance(b, Const) and b.value > 0:
        return op("lt", rest, 0.0)
    return op("and", op("ne", rest, 0.0), op("xor", op("lt", rest, 0.0), op("lt", b, 0.0)))


@row("aten.remainder.Tensor", "aten.remainder.Scalar")
def remainder(ctx: Context, input: Tensor, other: Operand) -> Tensor:
    return mapped(ctx, _remainder, input, other)


@row("aten.remainder.Scalar_Tensor")
def remainder_of_scalar(ctx: Context, input: Operand, other: Tensor) -> Tensor:
    return mapped(ctx, _remainder, input, other)


def _remainder(a: Value, b: Value) -> Value:
    """Python's a % b."""
    if kind_of(a) != "float":
        return op("mod_signed", a, b)
    rest = op("fmod", a, b)
    return where(_turns(rest, b), op("add", rest, b), rest)


@row("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(ctx: Context, input: Tensor, other: Operand) -> Tensor:
    fn = "fmod" if kind_of_dtype(ctx.dtype) == "float" else "fmod_int"
    return mapped(ctx, lambda a, b: op(fn, a, b), input, other)


@row("aten.pow.Tensor_Scalar")
def pow_scalar(ctx: Context, input: Tensor, exponent: Any) -> Tensor:
    if kind_of_dtype(ctx.dtype) == "float":
        return mapped(ctx, lambda x: power(x, exponent), input)
    if not isinstance(exponent, int) or exponent < 0:
        raise Refused("it raises whole numbers to a power that is no literal")
    return mapped(ctx, lambda x: _whole_power(x, exponent), input)


def power(x: Value, exponent: Any) -> Value:
    """x ** exponent in floats; small whole exponents and halves without a call."""
    if not isinstance(exponent, int | float):
        return op("pow", x, exponent)
    if exponent in SHORT:
        return op(SHORT[exponent], x)
    match exponent:
        case 0:
            return Const(1.0)
        case 1:
            return x
        case -2:
            return op("reciprocal", op("square", x))
        case 4:
            return op("square", op("square", x))
    return op("pow", x, float(exponent))


SHORT = {-1: "reciprocal", -0.5: "rsqrt", 0.5: "sqrt", 2: "square", 3: "cube"}
"""What PyTorch itself computes for these exponents."""


def _whole_power(x: Value, exponent: int) -> Value:
    """By squaring."""
    if exponent == 0:
        return Const(1)
    if exponent == 1:
        return x
    half = _whole_power(x, exponent // 2)
    return op("mul", op("square", half), x) if exponent % 2 else op("square", half)


@row("aten.pow.Tensor_Tensor")
def pow_tensor(ctx: Context, input: Tensor, exponent: Tensor) -> Tensor:
    return _general_power(ctx, input, exponent)


@row("aten.pow.Scalar")
def pow_of_scalar(ctx: Context, input: Operand, exponent: Tensor) -> Tensor:
    return _general_power(ctx, input, exponent)


def _general_power(ctx: Context, base: Operand, exponent: Operand) -> Tensor:
    if kind_of_dtype(ctx.dtype) != "float":
        raise Refused("it raises whole numbers to a power that is no literal")
    return mapped(ctx, lambda x, y: op("exp2", y) if is_literal(x, 2) else op("pow", x, y), base, exponent)


@row("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(ctx: Context, input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    return mapped(ctx, _lerp, input, end, weight)


def _lerp(start: Value, end: Value, weight: Value) -> Value:
    """From the nearer end, so that both are met exactly."""
    way = op("sub", end, start)
    from_start = op("add", start, op("mul", weight, way))
    if isinstance(weight, Const) and abs(weight.value) < 0.5:
        return from_start
    rest = Const(1.0 - weight.value) if isinstance(weight, Const) else op("sub", 1.0, weight)
    from_end = op("sub", end, op("mul", way, rest))
    if isinstance(weight, Const):
        return from_end
    return where(op("lt", op("abs", weight), 0.5), from_start, from_end)
