"""Promises to the compiler are held against the values, and those that experts make are believed."""

from typing import Any

import torch
import triton
import triton.language as tl
from races import faults


def details(kernel: Any, *args: Any) -> list[str]:
    found = faults(kernel[(1,)], *args)
    assert all(fault.kind == "false_promise" for fault in found)
    return [fault.detail for fault in found]


@triton.jit
def of_scalar(start, NUMBER: tl.constexpr):
    tl.multiple_of(start, NUMBER)


def a_scalar_is_a_multiple_or_is_named() -> None:
    assert details(of_scalar, 513, 16) == ["promises a multiple of 16, and it is 513"]
    assert details(of_scalar, 0, 16) == details(of_scalar, 48, 16) == details(of_scalar, -32, 16) == []


@triton.jit
def of_block(first, end, KIND: tl.constexpr, NUMBER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = first + tl.arange(0, BLOCK)
    if KIND == "wrapped":
        offsets = offsets % end
    if KIND == "zero":
        offsets = tl.where(offsets < end, offsets, 0)
    if KIND == "clamped":
        offsets = tl.minimum(offsets, end - 1)
    if KIND == "spread":
        offsets = offsets * end
    if KIND == "reversed":
        offsets = end - 1 - offsets
    tl.max_contiguous(tl.multiple_of(offsets, NUMBER), NUMBER)


def a_block_may_repeat_itself_past_the_end() -> None:
    for kind in ("plain", "wrapped", "zero", "clamped"):
        for first, end in ((0, 32), (0, 20), (32, 50), (0, 1)):
            if kind != "clamped" or end > 1:
                assert details(of_block, first, end, kind, 32, 32) == [], (kind, first, end)


def a_block_that_starts_elsewhere_or_has_gaps_is_refused() -> None:
    assert details(of_block, 8, 0, "plain", 16, 32) == ["promises a multiple of 16, and it is 8"]
    assert details(of_block, 1, 20, "wrapped", 32, 32) == [
        "promises a multiple of 32, and it is 1",
    ]
    assert details(of_block, 0, 2, "spread", 16, 32) == ["promises a multiple of 16, and it is 2"]
    assert "promises a multiple of 16, and it is 31" in details(of_block, 0, 32, "reversed", 16, 32)


@triton.jit
def contiguous(end, SHIFT: tl.constexpr, STEP: tl.constexpr):
    tl.max_contiguous((tl.arange(0, 16) * STEP + SHIFT) % end, 16)


def contiguous_values_follow_each_other() -> None:
    assert details(contiguous, 100, 3, 1) == []
    assert details(contiguous, 100, 0, 2) == ["promises 16 contiguous values, and 2 follows 0"]
    assert details(contiguous, 10, 3, 1) == ["promises 16 contiguous values, and 0 follows 9"]


@triton.jit
def of_tile(x_ptr, stride, HIGH: tl.constexpr, WIDE: tl.constexpr):
    pointers = x_ptr + tl.arange(0, 4)[:, None] * stride + tl.arange(0, 16)[None, :]
    tl.multiple_of(pointers, [HIGH, WIDE])
    tl.max_contiguous(pointers, [1, WIDE])


def the_first_address_of_each_row_of_a_tile_counts() -> None:
    x = torch.zeros(256)
    assert x.data_ptr() % 16 == 0
    assert details(of_tile, x, 20, 16, 16) == []
    (detail,) = details(of_tile, x, 21, 16, 16)
    assert detail.startswith("promises a multiple of 16, and it is ")
    assert details(of_tile, x, 21, 4, 4) == []


@triton.jit
def constant(group, SIZE: tl.constexpr):
    groups = tl.arange(0, 32) // group
    tl.max_constancy(groups, SIZE)
    tl.max_constancy(groups == 0, SIZE)


def constant_values_are_equal() -> None:
    assert details(constant, 16, 8) == []
    assert "promises 8 equal values, and 1 follows 0" in details(constant, 10, 8)


@triton.jit
def assumed(n):
    tl.assume(n % 16 == 0)


def what_is_assumed_holds() -> None:
    assert details(assumed, 32) == []
    assert details(assumed, 33) == ["assumes what does not hold"]
