"""What a kernel promises to the compiler, held against the values.

The compiler believes tl.multiple_of, tl.max_contiguous, tl.max_constancy and tl.assume: it accesses several
elements at once, at addresses that nobody checks. As in its own analysis, a multiple is promised of the first
value of each run of contiguous ones.

Lanes past the end of an axis may repeat what came before: experts promise the whole block of `offsets % N`,
of `tl.where(offsets < N, offsets, 0)` and of `tl.minimum(offsets, N - 1)`, whose last lanes no store keeps.
So a block that starts at a multiple of its promised length may start again from 0, or stay at its last value.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream

from .happens_before import Array

Check = Callable[[Array, int, int, int], str | None]
"""Of values along an axis: what was promised of each axis, and a contiguous step. None where it holds."""


def broken_promise(name: str, subject: Any, values: Any) -> str | None:
    """What tl.<name>(subject, values) promises and what is so instead, as a clause; None where it holds."""
    step = 1
    if isinstance(subject, tl.tensor):
        data = np.asarray(subject.handle.data)
        if subject.type.scalar.is_ptr():
            step = subject.type.scalar.element_ty.primitive_bitwidth // 8
    else:
        data = np.asarray(plain(subject))
    numbers = [
        plain(value) for value in (values if isinstance(values, list | tuple | tl.tuple) else [values])
    ]
    if data.dtype == np.bool_:
        data = data.astype(np.int8)
    check = CHECKS[name]
    for axis, number in enumerate(numbers):
        if number > 1 and data.size and (why := check(data, axis, number, step)):
            return why
    return None


def plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def not_multiple(data: Array, axis: int, number: int, step: int) -> str | None:
    first = data[starts_of_runs(data, step)]
    wrong = first[first % number != 0]
    return f"promises a multiple of {number}, and it is {wrong[0]}" if wrong.size else None


def starts_of_runs(data: Array, step: int) -> Array:
    """Where no axis goes on from the lane before, by a step or by repeating it."""
    starts = np.ones(data.shape, dtype=np.bool_)
    for axis in range(data.ndim):
        apart = np.diff(data, axis=axis)
        later = starts[(slice(None),) * axis + (slice(1, None),)]
        later &= (apart != step) & (apart != 0)
    return starts


def not_contiguous(data: Array, axis: int, number: int, step: int) -> str | None:
    lanes = np.moveaxis(data, axis, -1) if data.ndim else data.reshape(1)
    earlier, later = lanes[..., :-1], lanes[..., 1:]
    place = np.arange(1, lanes.shape[-1])
    group = place // number * number
    last = np.minimum(group + number, lanes.shape[-1]) - 1
    repeats = (later == 0) | (later == earlier) & (later == lanes[..., last])
    past_the_end = repeats & (lanes[..., group] % number == 0)
    broken = (place % number != 0) & (later - earlier != step) & ~past_the_end
    return (
        f"promises {number} contiguous values, and {follows(earlier, later, broken)}"
        if broken.any()
        else None
    )


def not_constant(data: Array, axis: int, number: int, step: int) -> str | None:
    lanes = np.moveaxis(data, axis, -1) if data.ndim else data.reshape(1)
    earlier, later = lanes[..., :-1], lanes[..., 1:]
    broken = (np.arange(1, lanes.shape[-1]) % number != 0) & (later != earlier)
    return f"promises {number} equal values, and {follows(earlier, later, broken)}" if broken.any() else None


def follows(earlier: Array, later: Array, broken: Array) -> str:
    return f"{later[broken][0]} follows {earlier[broken][0]}"


CHECKS: dict[str, Check] = {
    "multiple_of": not_multiple,
    "max_contiguous": not_contiguous,
    "max_constancy": not_constant,
}


def checked_promise(name: str, remember: Callable[..., Any]) -> Callable[..., Any]:
    """tl.<name>, which tells the builder what is promised before the interpreter remembers it."""

    def promise(input: Any, values: Any, **named: Any) -> Any:
        upstream.interpreter_builder.promise(name, input, values)
        return remember(input, values)

    return promise


def install() -> None:
    for name in CHECKS:
        for module in (tl, tl.core):
            setattr(module, name, checked_promise(name, getattr(module, name)))
