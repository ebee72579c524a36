"""Operators of several numbers: arithmetic, powers, comparisons, logic, bits and selection."""

from __future__ import annotations

from typing import Any

from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, kind_of_dtype, op
from pytorch_to_triton.draft.lower.row import (
    WIDTHS,
    Context,
    Formula,
    Operand,
    Refused,
    compared,
    is_literal,
    mapped,
    register_formulas,
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
        return ctx.pointwise("or", input, other)
    return mapped(ctx, lambda a, b, k: a + scaled(b, k), input, other, alpha)


@row("aten.div.Tensor", "aten.div.Scalar")
def div(ctx: Context, input: Tensor, other: Operand) -> Tensor:
    if ctx.dtype != "float64" and isinstance(other, int | float) and SMALLEST <= abs(other) <= 1 / SMALLEST:
        return ctx.pointwise("div_literal", input, other)
    return ctx.pointwise("div", input, other)


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
    return op("trunc_div_int", a, b) if kind_of(a) == "int" else op("trunc", a / b)


def floor_quotient(a: Value, b: Value) -> Value:
    """Python's a // b. Of floats: from the remainder, as floor(a / b) would be off where a / b rounds up."""
    if kind_of(a) != "float":
        return op("floordiv_signed", a, b)
    rest = op("fmod", a, b)
    quotient = (a - rest) / b
    whole = op("round", where(_turns(rest, b), quotient - 1.0, quotient))
    if isinstance(b, Const) and b.value != 0:
        return whole
    return where(op("eq", b, 0.0), a / b, whole)


def _turns(rest: Value, b: Value) -> Value:
    """Whether what C leaves over has not the divisor's sign."""
    if isinstance(b, Const) and b.value > 0:
        return rest < 0.0
    return op("ne", rest, 0.0) & op("xor", rest < 0.0, b < 0.0)


def _remainder(input: Value, other: Value) -> Value:
    """Python's %."""
    if kind_of(input) != "float":
        return op("mod_signed", input, other)
    rest = op("fmod", input, other)
    return where(_turns(rest, other), rest + other, rest)


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
    return op("square", half) * x if exponent % 2 else op("square", half)


def _general_power(input: Value, exponent: Value) -> Value:
    if kind_of(input) != "float":
        raise Refused("it raises whole numbers to a power that is no literal")
    return op("exp2", exponent) if is_literal(input, 2) else op("pow", input, exponent)


def _lerp(input: Value, end: Value, weight: Value) -> Value:
    """From the nearer end, so that both are met exactly."""
    way = end - input
    from_start = input + weight * way
    if isinstance(weight, Const) and abs(weight.value) < 0.5:
        return from_start
    rest = Const(1.0 - weight.value) if isinstance(weight, Const) else 1.0 - weight
    from_end = end - way * rest
    if isinstance(weight, Const):
        return from_end
    return where(op("abs", weight) < 0.5, from_start, from_end)


def larger(input: Value, other: Value) -> Value:
    """NaN where either is."""
    return op({"float": "maximum", "int": "larger", "bool": "or"}[kind_of(input)], input, other)


def smaller(input: Value, other: Value) -> Value:
    """NaN where either is."""
    return op({"float": "minimum", "int": "smaller", "bool": "and"}[kind_of(input)], input, other)


def between(x: Value, low: Value, high: Value) -> Value:
    """x where it is between the bounds, else the nearer one; the upper one where they are crossed."""
    literal = isinstance(low, Const) and isinstance(high, Const) and low.value <= high.value
    if kind_of(x) == "float" and literal:
        return op("clamp", x, low, high)
    return smaller(larger(x, low), high)


def _of_two(fn: str) -> Formula:
    return lambda input, other: op(fn, input, other)


def _of_bools(fn: str, otherwise: str) -> Formula:
    """A function of two numbers that is another one of bools."""
    return lambda input, other: op(fn if kind_of(input) == "bool" else otherwise, input, other)


register_formulas(
    {f"{fn}.Tensor {fn}.Scalar": _of_two(fn) for fn in ("eq", "ne", "lt", "le", "gt", "ge")}, compared
)
for _fn in ("and", "or", "xor"):
    _overloads = " ".join(f"bitwise_{_fn}.{overload}" for overload in ("Tensor", "Scalar", "Scalar_Tensor"))
    register_formulas({f"logical_{_fn}.default": _of_two(_fn), _overloads: _of_bools(_fn, f"bit_{_fn}")})
register_formulas({
    "sub.Tensor sub.Scalar": lambda input, other, alpha=1: input - scaled(other, alpha),
    "mul.Tensor mul.Scalar": _of_bools("and", "mul"),
    "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": _remainder,
    "fmod.Tensor fmod.Scalar": (
        lambda input, other: op("fmod" if kind_of(input) == "float" else "fmod_int", input, other)
    ),
    "pow.Tensor_Tensor pow.Scalar": _general_power,
    "lerp.Scalar lerp.Tensor": _lerp,
    "maximum.default": larger,
    "minimum.default": smaller,
    "fmax.default": _of_bools("or", "larger"),
    "fmin.default": _of_bools("and", "smaller"),
    "atan2.default": _of_two("atan2"),
    "hypot.default": _of_two("hypot"),
    "copysign.Tensor copysign.Scalar": _of_two("copysign"),
    "ldexp.Tensor": lambda input, other: input * op("exp2", other),
})  # fmt: skip


@row("aten.clamp.default", "aten.clamp.Tensor")
def clamp(ctx: Context, input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    if min is None or max is None:
        return mapped(ctx, larger, input, min) if max is None else mapped(ctx, smaller, input, max)
    return mapped(ctx, between, input, min, max)


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
        return where(_within(b, width), op("shift_left", a, b), 0)

    return mapped(ctx, formula, input, other)


@row(
    "aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar",
    "aten.bitwise_right_shift.Scalar_Tensor", "aten.__rshift__.Tensor", "aten.__rshift__.Scalar",
)  # fmt: skip
def shift_right(ctx: Context, input: Operand, other: Operand) -> Tensor:
    if _is_ordinary(ctx.dtype, other):
        return ctx.pointwise("shift_right", input, other)
    width = _signed_width(ctx.dtype)

    def formula(a: Value, b: Value) -> Value:
        return op("shift_right", a, where(_within(b, width), b, width - 1))

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
    return (shift >= 0) & (shift < width)


@row("aten.nextafter.default")
def nextafter(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    if ctx.dtype != "float32":
        raise Refused(f"it gives a neighbour among {ctx.dtype}")
    return ctx.pointwise("nextafter", input, other)


@row("aten.where.self")
def where_(ctx: Context, condition: Tensor, input: Operand, other: Operand) -> Tensor:
    return ctx.where(condition, input, other)


@row("aten.masked_fill.Scalar")
def masked_fill(ctx: Context, input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    return ctx.where(mask, value, input)
