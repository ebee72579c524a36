"""The interpreter's operations, right on packed formats and on NaN."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime import interpreter as upstream

from . import libdevice
from .block_types import Semantic
from .formats import Array, encode, handle_of, is_packed, numbers
from .launching import Resume

TF32_KEPT_BITS = np.uint32(0xFFFFE000)


class Builder(upstream.InterpreterBuilder):  # type: ignore[misc]
    """Triton's operations on numpy arrays. Handles come and go in the interpreter's own storage."""

    def __init__(self) -> None:
        super().__init__()
        # Asserts on. The check for int32 overflow stays off: it refuses correct code, such as hashes, that
        # wraps around by design, and computes every integer operation a second time in 64 bits.
        self.options: Any = dataclasses.replace(
            self.options,
            debug=True,
            sanitize_overflow=False,
            allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
        )

    def promise(self, name: str, subject: Any, values: Any) -> None:
        """tl.<name>(subject, values): a promise to the compiler, which the memory guard checks."""

    def pause(self) -> Resume:
        """What makes the running program, which gives way to others now, the running one again."""
        return partial(setattr, self, "grid_idx", self.grid_idx)

    def get_bf16(self, value: float) -> Any:
        return handle_of(np.array([value], dtype=np.float32), tl.bfloat16)

    def binary_op(self, lhs: Any, rhs: Any, op: Callable[[Any, Any], Array]) -> Any:
        dtype = lhs.dtype.scalar
        packed = is_packed(dtype)
        result = op(numbers(lhs), numbers(rhs)) if packed else super().binary_op(lhs, rhs, op).data
        return handle_of(result, tl.int1 if result.dtype == np.bool_ else dtype)

    def unary_op(self, arg: Any, op: Callable[[Any], Array]) -> Any:
        if is_packed(arg.dtype.scalar):
            return handle_of(op(numbers(arg)), arg.dtype.scalar)
        return super().unary_op(arg, op)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        keeps_nan = propagate_nans == ir.PROPAGATE_NAN.ALL
        larger, smaller = (np.maximum, np.minimum) if keeps_nan else (np.fmax, np.fmin)
        return self.binary_op(self.binary_op(arg, lo, larger), hi, smaller)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """x * y + z, of which only the sum is rounded, as GPUs do; float64 has no wider products here."""
        fused = libdevice.multiplied_and_added(numbers(x), numbers(y), numbers(z))
        return handle_of(fused, z.dtype.scalar)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        if is_packed(src.dtype.scalar) or is_packed(dst_type.scalar):
            return handle_of(numbers(src), dst_type.scalar)
        return super().cast_impl(src, dst_type)

    def create_fp_to_si(self, src: Any, dst_type: Any) -> Any:
        return handle_of(saturate(numbers(src), dst_type.scalar), dst_type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        toward_zero = rounding_mode == ir.ROUNDING_MODE.RTZ
        return handle_of(numbers(src), dst_type.scalar, toward_zero=toward_zero)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: int) -> Any:
        """a [.., M, K] @ b [.., K, N] + d [.., M, N], added in float32; integers and float64 in float64.

        Each sum over K is rounded once, so that a product and its transpose are the same numbers, as tensor
        cores have them: a gradient may compute scores again the other way round.
        """
        dtype = d.dtype.scalar
        wide = np.float32 if dtype.is_floating() and dtype != tl.float64 else np.float64
        left, right = (operand.astype(wide, copy=False) for operand in (numbers(a), numbers(b)))
        if input_precision == ir.INPUT_PRECISION.TF32 and a.dtype.scalar == tl.float32:
            left, right = truncate_to_tf32(left), truncate_to_tf32(right)
        product = np.matmul(left.astype(np.float64), right.astype(np.float64))
        with np.errstate(over="ignore"):
            return handle_of(product.astype(wide, copy=False) + numbers(d), dtype)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if rmwOp == ir.ATOMIC_OP.FADD and val.dtype.scalar == tl.bfloat16:
            return bfloat16_atomic_add(ptr, val, mask)
        return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)

    def create_extern_elementwise(
        self,
        libName: str,
        libPath: str,
        symbol: str,
        argList: list[Any],
        retType: Any,
        isPure: bool,  # noqa: FBT001
    ) -> Any:
        result = libdevice.function_of(symbol)(*(handle.data for handle in argList))
        return handle_of(np.asarray(result), retType.scalar)

    def create_print(
        self,
        prefix: str,
        hex: bool,  # noqa: FBT001
        values: list[Any],
        isSigned: list[int],
    ) -> None:
        readable = [
            v if hex or not is_packed(v.dtype.scalar) else handle_of(numbers(v), tl.float32) for v in values
        ]
        super().create_print(prefix, hex, readable, isSigned)


def saturate(values: Array, dtype: Any) -> Array:
    """Integers as GPUs convert them: limited to 32 bits, or to 64 where `dtype` has them, with NaN as 0."""
    sign = "int" if dtype.is_int_signed() else "uint"
    limits = np.iinfo(f"{sign}{max(32, dtype.int_bitwidth)}")
    finite = np.where(np.isnan(values), 0.0, values.astype(np.float64))
    integers = np.clip(finite, limits.min, limits.max).astype(limits.dtype)
    return np.where(finite >= limits.max, limits.max, integers)


def truncate_to_tf32(values: Array) -> Array:
    """Tensor cores read the upper 19 bits of a float32 operand and ignore the rest."""
    return (np.ascontiguousarray(values).view(np.uint32) & TF32_KEPT_BITS).view(np.float32)


def bfloat16_atomic_add(ptr: Any, val: Any, mask: Any) -> Any:
    """Adds lane by lane, since lanes may share an address; returns what each lane found."""
    addresses, active, addends = np.broadcast_arrays(ptr.data, mask.data, numbers(val))
    previous = np.zeros(addresses.shape, dtype=np.uint16)
    one_lane = np.ones(1, dtype=np.bool_)
    for lane in zip(*np.nonzero(active), strict=True):
        address = np.array([addresses[lane]], dtype=np.uint64)
        old = native.load(address, one_lane, np.zeros(1, dtype=np.uint16), np.dtype(np.uint16))
        total = numbers(upstream.TensorHandle(old, tl.bfloat16)) + addends[lane]
        native.store(address, encode(total, tl.bfloat16), one_lane)
        previous[lane] = old[0]
    return upstream.TensorHandle(previous, tl.bfloat16)


def install() -> None:
    upstream.InterpreterBuilder = Builder
    upstream.interpreter_builder = Builder()
    upstream.interpreter_semantic = Semantic(upstream.interpreter_builder)
