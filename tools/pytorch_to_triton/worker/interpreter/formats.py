"""Floating-point formats missing in numpy, bfloat16 and float8: Triton keeps them as bare bit patterns."""

import functools
from typing import Any, NamedTuple

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

Array = np.ndarray[Any, Any]


class Float8(NamedTuple):
    """`unsigned_zero` formats spend the pattern of -0 on their only NaN and have no infinity."""

    mantissa_bits: int
    exponent_bias: int
    unsigned_zero: bool = False


FLOAT8 = {
    "fp8e5": Float8(2, 15),
    "fp8e4nv": Float8(3, 7),
    "fp8e4b15": Float8(3, 15),
    "fp8e5b16": Float8(2, 16, unsigned_zero=True),
    "fp8e4b8": Float8(3, 8, unsigned_zero=True),
}
BFLOAT16_NAN = np.uint16(0x7FC0)
FLOAT8_NAN = 0x7F
SIGN = 0x80


STORAGE: dict[str, np.dtype[Any]] = {}
storage_upstream = upstream._get_np_dtype


def storage(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype that keeps a Triton dtype. Remembered: upstream builds its whole table at each call."""
    scalar = dtype.scalar
    if scalar.name not in STORAGE:
        STORAGE[scalar.name] = storage_upstream(scalar)
    return STORAGE[scalar.name]


def is_packed(dtype: Any) -> bool:
    """Whether the interpreter keeps values of this Triton scalar dtype as bit patterns."""
    return dtype.name == "bf16" or dtype.name in FLOAT8


def numbers(handle: Any) -> Array:
    """The handle's values as numpy computes with them: float32 for packed formats, else the data itself."""
    dtype = handle.dtype.scalar
    data: Array = np.asarray(handle.data)
    if not is_packed(dtype):
        return data
    return bfloat16_values(data) if dtype.name == "bf16" else np.asarray(float8_values(dtype.name)[data])


def handle_of(values: Array, dtype: Any, *, toward_zero: bool = False) -> Any:
    """A handle of `dtype` holding `values`, rounded to nearest even or toward zero. NaN stays NaN."""
    return upstream.TensorHandle(encode(values, dtype, toward_zero=toward_zero), dtype)


def encode(values: Array, dtype: Any, *, toward_zero: bool = False) -> Array:
    """`values` in the interpreter's storage of `dtype`."""
    if dtype.name == "bf16":
        bits = bfloat16_bits(values)
    elif dtype.name in FLOAT8:
        bits = float8_bits(values, dtype.name)
    else:
        bits = np.asarray(values).astype(storage(dtype), copy=False)
    return step_toward_zero(bits, values, dtype) if toward_zero else bits


def step_toward_zero(bits: Array, values: Array, dtype: Any) -> Array:
    """`bits`, rounded to nearest, moved by one unit in the last place where rounding went away from zero."""
    rounded = numbers(upstream.TensorHandle(bits, dtype))
    pattern: Array = bits.view(f"uint{bits.itemsize * 8}")
    away = np.abs(rounded) > np.abs(values)
    return np.subtract(pattern, away, dtype=pattern.dtype).view(bits.dtype)


def bfloat16_values(bits: Array) -> Array:
    """A bfloat16 is the upper half of the float32 of the same value."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def bfloat16_bits(values: Array) -> Array:
    """Rounds to nearest even: adds half a unit of the kept bits, one less where the kept part is even."""
    single = np.asarray(values).astype(np.float32, copy=False)
    bits = single.view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), BFLOAT16_NAN, rounded)


def float8_bits(values: Array, name: str) -> Array:
    """Rounds to nearest even and saturates at the largest finite value, as NVIDIA's conversions do."""
    unsigned_zero = FLOAT8[name].unsigned_zero
    midpoints = float8_midpoints(name)
    magnitude = np.abs(values).astype(np.float64)
    code = np.searchsorted(midpoints, magnitude)
    tie = midpoints[np.minimum(code, len(midpoints) - 1)] == magnitude
    code = code + (tie & (code % 2 == 1))
    negative = np.signbit(values) & ((code != 0) | (not unsigned_zero))
    code = np.where(negative, code | SIGN, code)
    return np.where(np.isnan(values), SIGN if unsigned_zero else FLOAT8_NAN, code).astype(np.uint8)


@functools.cache
def float8_values(name: str) -> Array:
    """The float32 value of each of the 256 patterns."""
    mantissa_bits, bias, unsigned_zero = FLOAT8[name]
    code = np.arange(256)
    exponent = (code & FLOAT8_NAN) >> mantissa_bits
    fraction = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    magnitude = np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
    )
    if name == "fp8e5":
        magnitude = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), magnitude)
    elif name == "fp8e4nv":
        magnitude = np.where(code & FLOAT8_NAN == FLOAT8_NAN, np.nan, magnitude)
    elif unsigned_zero:
        magnitude = np.where(code == SIGN, np.nan, magnitude)
    return np.where(code & SIGN, -magnitude, magnitude).astype(np.float32)


@functools.cache
def float8_midpoints(name: str) -> Array:
    """Halfway values between neighbouring finite magnitudes, ascending."""
    magnitudes = float8_values(name)[:SIGN].astype(np.float64)
    finite = magnitudes[np.isfinite(magnitudes)]
    return (finite[1:] + finite[:-1]) / 2


def block(data: Array, dtype: Any) -> Any:
    """A `tl.tensor` of `data`, already stored as `dtype`: a scalar where `data` has no dimension."""
    if data.ndim == 0:
        return tl.tensor(upstream.TensorHandle(data.reshape(1), dtype), dtype)
    return tl.tensor(upstream.TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)))


def install() -> None:
    upstream._get_np_dtype = storage
