"""libdevice: the functions behind `tl.extra.libdevice`, as numpy computes them.

Keys are NVIDIA's symbols less their `__nv_` and less the `f` or `d` that marks the type of the argument.
"""

import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from triton.language import core
from triton.language.extra import libdevice as portable
from triton.language.extra.cuda import libdevice as cuda
from triton.runtime import interpreter as upstream

from .formats import Array
from .launching import NotInterpreted

Function = Callable[..., Any]


def each(function: Callable[[float], float], *, outside: float = math.inf) -> Function:
    """`function` of Python floats on whole arrays; `outside` where it has no finite value."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return outside

    return np.vectorize(guarded, otypes=[np.float64])


def each_int(function: Callable[[int, int], int]) -> Function:
    """`function` of each integer's unsigned value and its width in bits."""

    def on_array(x: Array) -> Array:
        bits = x.itemsize * 8
        values = [function(int(value) % (1 << bits), bits) for value in x.ravel()]
        return np.array(values, dtype=np.uint64).reshape(x.shape)

    return on_array


def normal_quantile(p: float) -> float:
    if p in (0.0, 1.0):
        return math.copysign(math.inf, p - 0.5)
    return statistics.NormalDist().inv_cdf(p) if 0 < p < 1 else math.nan


def scaled_erfc(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    tail = 0.5 / (x * x)
    return (1 - tail * (1 - 3 * tail * (1 - 5 * tail))) / (x * math.sqrt(math.pi))


def half_away_from_zero(x: Array) -> Array:
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign(np.abs(x - whole) >= 0.5, x))


def ieee_remainder(x: Array, y: Array) -> Array:
    def remainder(a: float, b: float) -> float:
        return math.remainder(a, b) if b and math.isfinite(a) else math.nan

    return np.asarray(np.vectorize(remainder, otypes=[np.float64])(x, y))


def high_product(x: Array, y: Array) -> Array:
    bits = x.itemsize * 8
    product = np.vectorize(lambda a, b: (int(a) * int(b)) >> bits, otypes=[object])(x, y)
    return np.asarray(product).astype(x.dtype)


def length(*components: Array) -> Array:
    return np.sqrt(sum(x.astype(np.float64) ** 2 for x in components))


def inverse_length(*components: Array) -> Array:
    return np.asarray(1 / length(*components))


def multiplied_and_added(x: Array, y: Array, z: Array) -> Array:
    return np.asarray(x.astype(np.float64) * y + z)


ROUNDINGS: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}

SAME_IN_NUMPY = (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sqrt", "cbrt", "hypot", "signbit", "floor", "ceil", "trunc", "rint", "copysign", "nextafter", "fmod",
    "ldexp", "isnan", "isinf", "abs", "fmax", "fmin",
)  # fmt: skip

WITH_MODES: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ma": multiplied_and_added,
    "maf": multiplied_and_added,
}
"""By names such as `fadd_rn`: to nearest is the only one that numpy has."""
VIEWS = {
    "float_as_int": np.int32,
    "float_as_uint": np.uint32,
    "int_as_float": np.float32,
    "uint_as_float": np.float32,
    "double_as_longlong": np.int64,
    "longlong_as_double": np.float64,
}
FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in SAME_IN_NUMPY},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    **dict.fromkeys(("norm3d", "norm4d"), length),
    **dict.fromkeys(("rhypot", "rnorm3d", "rnorm4d"), inverse_length),
    "fma": multiplied_and_added,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0)),
    "fdivide": np.divide,
    "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "erfcx": each(scaled_erfc),
    "erfinv": each(
        lambda x: math.copysign(normal_quantile((1 - abs(x)) / 2), x) / math.sqrt(2), outside=math.nan
    ),
    "erfcinv": each(lambda x: -normal_quantile(x / 2) / math.sqrt(2), outside=math.nan),
    "normcdf": each(lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "normcdfinv": each(normal_quantile, outside=math.nan),
    "lgamma": each(math.lgamma),
    "tgamma": each(math.gamma, outside=math.nan),
    "cyl_bessel_i0": lambda x: np.i0(x).reshape(x.shape),
    "fabs": np.abs,
    "nearbyint": np.rint,
    "round": half_away_from_zero,
    "remainder": ieee_remainder,
    "scalbn": np.ldexp,
    **dict.fromkeys(("ilogb", "logb"), lambda x: np.frexp(x)[1] - 1),
    **dict.fromkeys(("finite", "isfinite"), np.isfinite),
    "popc": each_int(lambda value, bits: value.bit_count()),
    "clz": each_int(lambda value, bits: bits - value.bit_length()),
    "ffs": each_int(lambda value, bits: (value & -value).bit_length()),
    "brev": each_int(lambda value, bits: int(f"{value:0{bits}b}"[::-1], 2)),
    **dict.fromkeys(("mulhi", "umulhi", "mul64hi", "umul64hi"), high_product),
    **{name: partial(np.ndarray.view, dtype=dtype) for name, dtype in VIEWS.items()},
    **{f"{kind}{name}_rn": function for kind in "fd" for name, function in WITH_MODES.items()},
    **{
        f"{source}2{target}_{mode}": rounding
        for source in ("float", "double")
        for target in ("int", "uint", "ll", "ull")
        for mode, rounding in ROUNDINGS.items()
    },
    **{
        f"{source}2{target}_rn": np.asarray
        for source in ("int", "uint", "ll", "ull")
        for target in ("float", "double")
    },
    "double2float_rn": np.asarray,
}


def function_of(symbol: str) -> Function:
    """What computes a symbol such as `__nv_tanhf`, `__nv_fast_tanf`, `__nv_popcll` or `__nv_llrint`.

    Raises NotInterpreted, naming it, where nothing does.
    """
    name = symbol.removeprefix("__nv_")
    plain = name.removeprefix("fast_").removeprefix("ll")
    for candidate in (name, plain, *(plain.removesuffix(end) for end in ("f", "d", "ll"))):
        if candidate in FUNCTIONS:
            return FUNCTIONS[candidate]
    raise NotInterpreted(f"function `{name}` of libdevice")


def bound_to_interpreter(function: Function) -> Function:
    def call(*args: Any) -> Any:
        return function(*args, _semantic=upstream.interpreter_semantic)

    return call


def unavailable(name: str) -> Function:
    def call(*args: Any) -> Any:
        raise NotInterpreted(f"function `{name}` of libdevice")

    return call


def install() -> None:
    """Point both libdevice modules, whose functions only a compiler can call, at the interpreter."""
    available = {name: bound_to_interpreter(f) for name, f in vars(cuda).items() if core.is_builtin(f)}
    stubs = {name for name, value in vars(portable).items() if callable(value)}
    for name in stubs | available.keys():
        setattr(portable, name, available.get(name) or unavailable(name))
    for name, function in available.items():
        setattr(cuda, name, function)
