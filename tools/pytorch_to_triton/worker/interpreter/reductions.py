"""tl.reduce and tl.associative_scan: rounding and NaN as on a GPU, custom functions on whole blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

from .formats import Array, block
from .syntax import BlockCondition

# Combine functions of Triton's own reductions, by the numpy function that does the same.
UFUNCS = {
    "_elementwise_max": np.fmax,
    "_elementwise_min": np.fmin,
    "_sum_combine": np.add,
    "_prod_combine": np.multiply,
}
POSITIONS = {
    "_argmax_combine_tie_break_left": np.argmax,
    "_argmax_combine_tie_break_fast": np.argmax,
    "_argmin_combine_tie_break_left": np.argmin,
    "_argmin_combine_tie_break_fast": np.argmin,
}
EXACT = {"fp32", "fp64"}


def entry_for(table: dict[str, Any], combine: Any) -> Any:
    """The table's entry for one of `triton.language.standard`'s combine functions, else None."""
    name = combine.__name__
    return table.get(name) if getattr(tl.standard, name, None) is combine else None


def suits_numpy(dtype: Any) -> bool:
    """16-bit and 8-bit floats round after every addition on a GPU, which numpy's own loops would hide."""
    return dtype.name in EXACT or dtype.is_int()


class ReduceOps(upstream.ReduceOps):  # type: ignore[misc]
    """A reduction along `axis`, or over everything where it is None."""

    def apply_impl(self, input: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in input]
        arrays = [tensor.handle.data for tensor in input]
        rank = arrays[0].ndim
        axis = tl.core._unwrap_if_constexpr(self.axis)
        if axis is None:
            arrays, axis = [array.reshape(-1) for array in arrays], 0
        kept = self.reduced(arrays, dtypes, axis)
        if self.axis is None and self.keep_dims:
            kept = [array.reshape((1,) * rank) for array in kept]
        elif not self.keep_dims:
            kept = [np.squeeze(array, axis) for array in kept]
        return [block(array, dtype) for array, dtype in zip(kept, dtypes, strict=True)]

    def reduced(self, arrays: list[Array], dtypes: list[Any], axis: int) -> list[Array]:
        """Each array with `axis` reduced to length 1."""
        ufunc, position = entry_for(UFUNCS, self.combine_fn), entry_for(POSITIONS, self.combine_fn)
        values = arrays[0]
        if ufunc and suits_numpy(dtypes[0]):
            # Lanes are added in pairs on a GPU; numpy does so along the last axis alone.
            last = np.ascontiguousarray(np.moveaxis(values, axis, -1))
            totals = ufunc.reduce(last, axis=-1, keepdims=True, dtype=values.dtype)
            return [np.moveaxis(totals, -1, axis)]
        if position and suits_numpy(dtypes[0]) and not np.isnan(values).any():
            best = position(values, axis=axis, keepdims=True)
            return [np.take_along_axis(array, best, axis) for array in arrays]
        try:
            pairs = neighbours if ufunc or position else half_apart
            return reduce_in_pairs(block_combine(self.combine_fn, dtypes), arrays, axis, pairs)
        except BlockCondition:
            return [result.handle.data for result in self.element_by_element(arrays, dtypes, axis)]

    def element_by_element(self, arrays: list[Array], dtypes: list[Any], axis: int) -> list[Any]:
        """For combine functions that branch on their arguments, which only scalars can do: the last element
        first, since operands come in no order."""
        backwards = (np.flip(array, axis) for array in arrays)
        tensors = tuple(block(array, dtype) for array, dtype in zip(backwards, dtypes, strict=True))
        return list(ReduceOps(axis, self.combine_fn, keep_dims=True).generic_reduce(tensors))


class ScanOps(upstream.ScanOps):  # type: ignore[misc]
    """An inclusive scan along `axis`."""

    def apply_impl(self, input: tuple[Any, ...]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in input]
        axis = tl.core._unwrap_if_constexpr(self.axis)
        arrays = [self.in_order(tensor.handle.data, axis) for tensor in input]
        scanned = self.scanned(arrays, dtypes, axis)
        return [block(self.in_order(a, axis), dtype) for a, dtype in zip(scanned, dtypes, strict=True)]

    def in_order(self, array: Array, axis: int) -> Array:
        return np.ascontiguousarray(np.flip(array, axis)) if self.reverse else array

    def scanned(self, arrays: list[Array], dtypes: list[Any], axis: int) -> list[Array]:
        ufunc = entry_for(UFUNCS, self.combine_fn)
        if ufunc and suits_numpy(dtypes[0]):
            # By doubling, as a GPU does: one addition after the other would round differently, and worse.
            return scan_by_doubling(lambda a, b: [ufunc(a[0], b[0])], arrays, axis)
        try:
            return scan_by_doubling(block_combine(self.combine_fn, dtypes), arrays, axis)
        except BlockCondition:
            tensors = tuple(block(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True))
            return [result.handle.data for result in self.generic_scan(tensors)]


Combine = Callable[[list[Array], list[Array]], list[Array]]
Pairs = Callable[[Array], tuple[Array, Array]]
"""What is combined with what."""


def block_combine(combine_fn: Any, dtypes: list[Any]) -> Combine:
    """The kernel author's combine function, called with blocks where the compiler would pass scalars."""
    combine = combine_fn.rewrite()

    def combined(lefts: list[Array], rights: list[Array]) -> list[Array]:
        operands = [block(a, t) for side in (lefts, rights) for a, t in zip(side, dtypes, strict=True)]
        results = combine(*operands)
        results = results if isinstance(results, tuple | tl.tuple) else (results,)
        return [
            accumulated(result, dtype, left.shape)
            for result, dtype, left in zip(results, dtypes, lefts, strict=True)
        ]

    return combined


def accumulated(result: Any, dtype: Any, shape: tuple[int, ...]) -> Array:
    """What takes the operands' place. Raises TypeError for another dtype, which the compiler refuses."""
    semantic = upstream.interpreter_semantic
    tensor = semantic.to_tensor(result)
    if isinstance(result, tl.tensor) and not is_stored_alike(tensor.dtype, dtype):
        raise TypeError(f"the compiler refuses a combine function that makes {tensor.dtype} of {dtype}")
    return np.broadcast_to(semantic.cast(tensor, dtype).handle.data, shape)


def is_stored_alike(one: Any, other: Any) -> bool:
    """Whether the dtypes are the same, but for the sign of integers, of which the compiler's have none."""
    integers = one.is_int() and other.is_int()
    same_bits = one.primitive_bitwidth == other.primitive_bitwidth
    return bool((integers and same_bits) or one == other)


def reduce_in_pairs(combine: Combine, arrays: list[Array], axis: int, pairs: Pairs) -> list[Array]:
    """Elements are combined in pairs, then their results: log2(n) steps."""
    front = [np.moveaxis(array, axis, 0) for array in arrays]
    while len(front[0]) > 1:
        lefts, rights = zip(*map(pairs, front), strict=True)
        front = combine([*lefts], [*rights])
    return [np.moveaxis(array, 0, axis) for array in front]


def neighbours(array: Array) -> tuple[Array, Array]:
    """In order, as a thread combines the elements that it holds."""
    return array[0::2], array[1::2]


def half_apart(array: Array) -> tuple[Array, Array]:
    """The later one first. Threads hold elements that lie apart and pass their results on either way, so that
    a combine function has to be commutative (github.com/triton-lang/triton/issues/4962)."""
    half = len(array) // 2
    return array[half:], array[:half]


def scan_by_doubling(combine: Combine, arrays: list[Array], axis: int) -> list[Array]:
    """Each element takes in the result `reach` before it, and `reach` doubles: log2(n) steps."""
    front = [np.moveaxis(array, axis, 0) for array in arrays]
    reach = 1
    while reach < len(front[0]):
        # Shifted in a ring so that blocks keep their size; the wrapped results are dropped.
        taken_in = combine([np.roll(array, reach, 0) for array in front], front)
        front = [np.concatenate([a[:reach], t[reach:]]) for a, t in zip(front, taken_in, strict=True)]
        reach *= 2
    return [np.ascontiguousarray(np.moveaxis(array, 0, axis)) for array in front]


def install() -> None:
    upstream.ReduceOps = ReduceOps
    upstream.ScanOps = ScanOps
