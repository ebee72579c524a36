"""Every pointwise function: how it is written in Triton, and what it means in NumPy.

`{0}`, `{1}`, ... stand for the operands. A function that is a row here needs nothing else in the printer;
what is written of several functions gives a name to an operand that it mentions twice.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

Kind = Literal["float", "int", "bool"]


@dataclass(frozen=True)
class Helper:
    """A function of the drafted file that its kernels call."""

    name: str
    source: str


@dataclass(frozen=True)
class Function:
    """A pointwise function."""

    triton: str
    numpy: Callable[..., Any]
    result: Kind | None = None
    """The kind of value that it gives; None: its operands'."""
    helper: Helper | None = None
    """What its text calls that Triton has not."""


QUOTIENT = Helper(
    "quotient_rn",
    '''\
@triton.jit
def quotient_rn(x, y):
    """x / y as tl.div_rn rounds it, down to 2**-32: faster where y is the same for many elements."""
    # A power of two with the sign of y: 1 / y and the excess are normal numbers, and zeros keep their signs.
    size = tl.abs(y)
    power = tl.where(size < 2.0**-64, 2.0**64, tl.where(size > 2.0**64, 2.0**-64, 1.0))
    power = tl.where(y < 0.0, -power, power)
    x, y = x * power, y * power
    inverse = tl.div_rn(1.0, y)
    near = x * inverse
    excess = tl.fma(near, y, -x)
    # Infinities, NaN and quotients by zero have none.
    return tl.where(tl.abs(excess) < float("inf"), tl.fma(-excess, inverse, near), near)''',
)
"""One correction by a fused remainder rounds right: Markstein, IBM J. Res. Dev. 34 (1990), page 111."""


APART = "({0} % {1} != 0) & (({0} < 0) != ({1} < 0))"
"""Where Triton, which truncates, and Python, which rounds down, divide differently."""
NAN = "propagate_nan=tl.PropagateNan.ALL"
_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _log_of_gamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def _quantile(p: float) -> float:
    """Where the normal distribution reaches a share."""
    if p in (0.0, 1.0):
        return math.copysign(math.inf, p - 0.5)
    return statistics.NormalDist().inv_cdf(p) if 0 < p < 1 else math.nan


def _scaled_erfc(x: float) -> float:
    """exp(x^2) erfc(x)."""
    if x < -26.7:
        return math.inf
    if x < 25 or math.isnan(x):
        return math.exp(x * x) * math.erfc(x)
    tail = 0.5 / (x * x)
    return (1 - tail * (1 - 3 * tail * (1 - 5 * tail))) / (x * math.sqrt(math.pi))


def _nextafter(x: Any, y: Any) -> Any:
    return np.nextafter(np.asarray(x, np.float32), np.asarray(y, np.float32)).astype(float)


_erfcx = np.vectorize(_scaled_erfc, otypes=[float])
_lgamma = np.vectorize(_log_of_gamma, otypes=[float])
_normcdfinv = np.vectorize(_quantile, otypes=[float])


def _erfinv(x: Any) -> Any:
    return _normcdfinv((np.asarray(x) + 1) / 2) * 0.5**0.5


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + _erf(x * 0.5**0.5))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def _softplus(x: Any) -> Any:
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def _sign(x: Any) -> Any:
    return np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))


def _trunc_div(a: Any, b: Any) -> Any:
    return (a - np.fmod(a, b)) // b


def _triangle_row(place: Any) -> Any:
    return (np.sqrt(8 * np.asarray(place) + 1).astype(np.int64) - 1) // 2


def _triangle_column(place: Any, row: Any) -> Any:
    return place - row * (row + 1) // 2


def _cast(x: Any, dtype: str) -> Any:
    return np.asarray(x).astype(dtype)


def _namesakes(module: str, operands: str, names: str) -> dict[str, Function]:
    """Functions of floats that Triton's module and NumPy have under one name."""
    return {n: Function(f"{module}.{n}({operands})", getattr(np, n), "float") for n in names.split()}


def _uniform(seed: Any, place: Any) -> Any:
    """float32 in [0, 1): the first word of Philox 4x32-10 (Salmon and others, SC11), as tl.rand takes it."""
    word = np.uint64(0xFFFFFFFF)
    seed, place = (x.astype(np.int64).view(np.uint64) for x in np.broadcast_arrays(seed, place))
    half = np.uint64(32)
    c0, c1, c2, c3 = place & word, place >> half, np.zeros_like(place), np.zeros_like(place)
    k0, k1 = seed & word, seed >> half
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> half) ^ c1 ^ k0, b & word, (a >> half) ^ c3 ^ k1, a & word
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & word, (k1 + np.uint64(0xBB67AE85)) & word
    signed = c0.astype(np.uint32).view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


FUNCTIONS: Mapping[str, Function] = {
    **_namesakes("tl", "{0}", "exp exp2 log log2 sqrt sin cos floor ceil"),
    **_namesakes(
        "libdevice", "{0}",
        "expm1 log10 log1p tan asin acos atan sinh cosh tanh asinh acosh atanh trunc",
    ),
    **_namesakes("libdevice", "{0}, {1}", "fmod pow atan2 hypot copysign"),
    # arithmetic
    "add": Function("{0} + {1}", np.add),
    "sub": Function("{0} - {1}", np.subtract),
    "mul": Function("{0} * {1}", np.multiply),
    "div": Function("{0} / {1}", np.divide, "float"),
    "div_rn": Function("tl.div_rn({0}, {1})", np.divide, "float"),
    "quotient_rn": Function("quotient_rn({0}, {1})", np.divide, "float", QUOTIENT),
    "div_literal": Function("{0} * (1.0 / {1})", np.divide, "float"),
    "neg": Function("-{0}", np.negative),
    "abs": Function("tl.abs({0})", np.abs),
    "square": Function("{0} * {0}", np.square),
    "cube": Function("{0} * {0} * {0}", lambda x: x * x * x),
    "reciprocal": Function("1.0 / {0}", np.reciprocal, "float"),
    "floordiv": Function("{0} // {1}", np.floor_divide),
    "mod": Function("{0} % {1}", np.mod),
    "floordiv_signed": Function(
        f"tl.where({APART}, {{0}} // {{1}} - 1, {{0}} // {{1}})", np.floor_divide
    ),
    "mod_signed": Function(f"tl.where({APART}, {{0}} % {{1}} + {{1}}, {{0}} % {{1}})", np.mod),
    "trunc_div_int": Function("{0} // {1}", _trunc_div),
    "fmod_int": Function("{0} % {1}", np.fmod),
    # where the place of a number is in a triangle of 1 place in the first row, 2 in the second, ...
    "triangle_row": Function(
        "(tl.sqrt_rn(tl.cast(8 * {0} + 1, tl.float32)).to(tl.int32) - 1) // 2", _triangle_row, "int"
    ),
    "triangle_column": Function("{0} - {1} * ({1} + 1) // 2", _triangle_column),
    # comparisons and logic
    "eq": Function("{0} == {1}", np.equal, "bool"),
    "ne": Function("{0} != {1}", np.not_equal, "bool"),
    "ge": Function("{0} >= {1}", np.greater_equal, "bool"),
    "gt": Function("{0} > {1}", np.greater, "bool"),
    "le": Function("{0} <= {1}", np.less_equal, "bool"),
    "lt": Function("{0} < {1}", np.less, "bool"),
    "and": Function("{0} & {1}", np.logical_and, "bool"),
    "or": Function("{0} | {1}", np.logical_or, "bool"),
    "xor": Function("{0} ^ {1}", np.logical_xor, "bool"),
    "not": Function("{0} == 0", np.logical_not, "bool"),
    "bit_and": Function("{0} & {1}", np.bitwise_and),
    "bit_or": Function("{0} | {1}", np.bitwise_or),
    "bit_xor": Function("{0} ^ {1}", np.bitwise_xor),
    "bit_not": Function("~{0}", np.invert),
    "shift_left": Function("{0} << {1}", np.left_shift),
    "shift_right": Function("{0} >> {1}", np.right_shift),
    "where": Function("tl.where({0}, {1}, {2})", np.where),
    "is_nan": Function("{0} != {0}", np.isnan, "bool"),
    "is_inf": Function('tl.abs({0}) == float("inf")', np.isinf, "bool"),
    # kinds and widths
    "to_float": Function("{0}.to(tl.float32)", lambda x: np.asarray(x, float), "float"),
    "to_double": Function("{0}.to(tl.float64)", lambda x: np.asarray(x, float), "float"),
    "to_half": Function(
        "{0}.to(tl.float16).to(tl.float32)", lambda x: np.asarray(x, np.float16).astype(float), "float"
    ),
    "to_bfloat16": Function("{0}.to(tl.bfloat16).to(tl.float32)", lambda x: np.asarray(x, float), "float"),
    "to_float8": Function("{0}.to(tl.float8e4nv).to(tl.float32)", lambda x: np.asarray(x, float), "float"),
    **{
        f"to_{dtype}": Function(f"{{0}}.to(tl.{dtype})", partial(_cast, dtype=dtype), "int")
        for dtype in ("int8", "uint8", "int16", "int32", "int64")
    },
    "to_index": Function("{0}.to(INDEX)", partial(_cast, dtype="int64"), "int"),
    # of a number of an unrolled loop, which has no .to
    "as_index": Function("tl.cast({0}, INDEX)", partial(_cast, dtype="int64"), "int"),
    "to_bool": Function("{0} != 0", lambda x: np.asarray(x) != 0, "bool"),
    # largest and smallest: NaN wins, as in PyTorch
    "maximum": Function(f"tl.maximum({{0}}, {{1}}, {NAN})", np.maximum),
    "minimum": Function(f"tl.minimum({{0}}, {{1}}, {NAN})", np.minimum),
    "larger": Function("tl.maximum({0}, {1})", np.fmax),
    "smaller": Function("tl.minimum({0}, {1})", np.fmin),
    "clamp": Function(
        f"tl.clamp({{0}}, {{1}}, {{2}}, {NAN})", lambda x, a, b: np.minimum(np.maximum(x, a), b)
    ),
    # transcendental
    "exp_full": Function("libdevice.exp({0})", np.exp, "float"),
    "sqrt_rn": Function("tl.sqrt_rn({0})", np.sqrt, "float"),
    "rsqrt": Function("tl.rsqrt({0})", lambda x: 1 / np.sqrt(x), "float"),
    "erf": Function("tl.erf({0})", _erf, "float"),
    "erfc": Function("libdevice.erfc({0})", _erfc, "float"),
    "erfcx": Function("libdevice.erfcx({0})", _erfcx, "float"),
    "lgamma": Function("libdevice.lgamma({0})", _lgamma, "float"),
    "erfinv": Function("libdevice.erfinv({0})", _erfinv, "float"),
    "normcdfinv": Function("libdevice.normcdfinv({0})", _normcdfinv, "float"),
    "i0": Function("libdevice.cyl_bessel_i0({0})", lambda x: np.i0(x).reshape(np.shape(x)), "float"),
    "round": Function("libdevice.rint({0})", np.rint, "float"),
    # the bits of a float: those of float32
    "nextafter": Function("libdevice.nextafter({0}, {1})", _nextafter, "float"),
    "ilogb": Function("libdevice.ilogb({0})", lambda x: np.frexp(x)[1] - 1, "int"),
    "ldexp": Function("libdevice.ldexp({0}, {1})", np.ldexp, "float"),
    "sign": Function("tl.where({0} > 0.0, 1.0, tl.where({0} < 0.0, -1.0, 0.0))", _sign, "float"),
    "sign_int": Function("tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0))", np.sign),
    # random numbers
    "uniform": Function("tl.rand({0}, {1})", _uniform, "float"),
    # activations
    "relu": Function(f"tl.maximum({{0}}, 0.0, {NAN})", lambda x: np.maximum(x, 0)),
    "sigmoid": Function("tl.sigmoid({0})", _sigmoid, "float"),
    "silu": Function("{0} * tl.sigmoid({0})", lambda x: x * _sigmoid(x), "float"),
    "gelu": Function("0.5 * {0} * (1.0 + tl.erf(0.7071067811865476 * {0}))", _gelu, "float"),
    "gelu_tanh": Function(
        "0.5 * {0} * (1.0 + libdevice.tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))",
        _gelu_tanh,
        "float",
    ),
    "softplus": Function("tl.where({0} > 20.0, {0}, libdevice.log1p(tl.exp({0})))", _softplus, "float"),
    "mish": Function(
        "{0} * libdevice.tanh(tl.where({0} > 20.0, {0}, libdevice.log1p(tl.exp({0}))))",
        lambda x: x * np.tanh(_softplus(x)),
        "float",
    ),
}  # fmt: skip
