"""bfloat16, float16 and float8: bit for bit what torch computes on the CPU."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BFLOAT16 = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
SHUFFLED = BFLOAT16[torch.randperm(65536, generator=torch.Generator().manual_seed(0))]
LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Equal bits, signed zeros included; any NaN equals any NaN."""
    nan = expected.float().isnan()
    assert torch.equal(actual.float().isnan(), nan)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[expected.element_size()]
    different = (actual.view(bits) != expected.view(bits)) & ~nan
    assert not different.any(), (actual[different][:4], expected[different][:4])


@triton.jit
def arithmetic(x_ptr, y_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, FUNCTION(x, y), mask=i < n)


def computed(function: Callable[..., Any], x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    arithmetic[(1,)](x, y, out, x.numel(), function, triton.next_power_of_2(x.numel()))
    return out


def bfloat16_sums_differences_and_products_round_to_nearest_even() -> None:
    for function in (operator.add, operator.sub, operator.mul):
        assert_same(computed(function, BFLOAT16, SHUFFLED), function(BFLOAT16, SHUFFLED))
    assert_same(computed(lambda x, y: (x / y).to(x.dtype), BFLOAT16, SHUFFLED), BFLOAT16 / SHUFFLED)


def compared(x: Any, y: Any) -> Any:
    return ((x <= y) & (x != y)) | (x > y)


def bfloat16_comparisons_compare_values() -> None:
    assert_same(computed(compared, BFLOAT16, SHUFFLED), compared(BFLOAT16, SHUFFLED).bfloat16())
    smaller = computed(lambda x, y: tl.where(x < y, x, y), BFLOAT16, SHUFFLED)
    assert_same(smaller, torch.where(BFLOAT16 < SHUFFLED, BFLOAT16, SHUFFLED))


def bfloat16_fma_rounds_once() -> None:
    x, y = torch.randn(2, 4096).bfloat16()
    assert_same(computed(lambda x, y: tl.fma(x, y, x), x, y), (x.double() * y + x).bfloat16())


def minimum_and_maximum_drop_nan_unless_asked_to_propagate_it() -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x = torch.tensor([1.0, float("nan"), float("nan"), -2.0], dtype=dtype)
        y = torch.tensor([float("nan"), 3.0, float("nan"), 5.0], dtype=dtype)
        assert_same(computed(tl.maximum, x, y), torch.fmax(x, y))
        assert_same(computed(tl.minimum, x, y), torch.fmin(x, y))
        for ours, theirs in ((tl.maximum, torch.maximum), (tl.minimum, torch.minimum)):
            propagating = partial(ours, propagate_nan=tl.PropagateNan.ALL)
            assert_same(computed(propagating, x, y), theirs(x, y))


@triton.jit
def cast(x_ptr, out_ptr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty, fp_downcast_rounding=MODE))


def converted(x: Tensor, dtype: torch.dtype, mode: str | None = None) -> Tensor:
    out = torch.empty(x.shape, dtype=dtype)
    cast[(1,)](x, out, mode, x.numel())
    return out


def casts_to_bfloat16_round_to_nearest_even_and_keep_nan() -> None:
    bits = torch.randint(
        -(2**31), 2**31, (65536,), dtype=torch.int64, generator=torch.Generator().manual_seed(1)
    )
    singles = bits.to(torch.int32).view(torch.float32)
    assert_same(converted(singles, torch.bfloat16), singles.bfloat16())
    for dtype in (torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8):
        values = torch.arange(-1024, 1024).to(dtype)
        assert_same(converted(values, torch.bfloat16), values.bfloat16())


def casts_from_bfloat16_are_exact() -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        assert_same(converted(BFLOAT16, dtype), BFLOAT16.to(dtype))
    whole = torch.arange(-128, 128).bfloat16()
    assert torch.equal(converted(whole, torch.int32), whole.int())


def casts_round_toward_zero_when_asked() -> None:
    x = torch.randn(4096, generator=torch.Generator().manual_seed(2))
    for dtype in (torch.bfloat16, torch.float16):
        cut = converted(x, dtype, "rtz")
        assert (cut.float().abs() <= x.abs()).all()
        assert ((cut.float() == x.to(dtype).float()) | (cut.float().abs() < x.to(dtype).float().abs())).all()
        assert (cut.float() != x.to(dtype).float()).any()


def casts_to_integers_saturate_and_make_nan_zero() -> None:
    x = torch.tensor([float("nan"), 1e20, -1e20, -1.5])
    assert converted(x, torch.int32).tolist() == [0, 2**31 - 1, -(2**31), -1]
    assert converted(x[1:3], torch.int64).tolist() == [2**63 - 1, -(2**63)]
    assert converted(x, torch.uint8).tolist() == [0, 255, 0, 0]
    assert converted(x, torch.int8).tolist() == [0, -1, 0, -1]


def float8_casts_round_to_nearest_even() -> None:
    for dtype, largest in LARGEST.items():
        x = torch.linspace(-largest, largest, 32768)
        tiny = torch.linspace(-0.01, 0.01, 32768)
        for values in (x, tiny, x.half(), tiny.half()):
            assert_same(converted(values, dtype), values.to(dtype))


def float8_casts_saturate_as_nvidia_converts() -> None:
    x = torch.tensor([1e6, -1e6, float("inf"), float("nan")])
    for dtype, largest in LARGEST.items():
        out = converted(x, dtype).float()
        assert out[:3].tolist() == [largest, -largest, largest]
        assert out[3].isnan()


def every_float8_pattern_reads_as_its_value() -> None:
    for dtype in LARGEST:
        patterns = torch.arange(256, dtype=torch.uint8).view(dtype)
        assert_same(converted(patterns, torch.float32), patterns.float())
        small = patterns[:64]
        assert_same(converted(small, torch.bfloat16), small.to(torch.bfloat16))


@triton.jit
def filled(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.full([BLOCK], 1.7, tl.bfloat16) - tl.zeros([BLOCK], tl.bfloat16))


def bfloat16_constants_can_be_made() -> None:
    out = torch.empty(16, dtype=torch.bfloat16)
    filled[(1,)](out, 16)
    assert_same(out, torch.full((16,), 1.7, dtype=torch.bfloat16))


@triton.jit
def clamped(x_ptr, out_ptr, NAN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    lowest = tl.full([BLOCK], -1.0, x.dtype)
    highest = tl.full([BLOCK], 2.0, x.dtype)
    tl.store(out_ptr + i, tl.clamp(x, lowest, highest, propagate_nan=NAN))


def clamp_sends_nan_to_the_lower_bound_unless_asked_to_propagate_it() -> None:
    x = torch.tensor([-3.0, 0.5, 3.0, float("nan")])
    out = torch.empty_like(x)
    clamped[(1,)](x, out, tl.PropagateNan.NONE, 4)
    assert out.tolist() == [-1.0, 0.5, 2.0, -1.0]
    clamped[(1,)](x, out, tl.PropagateNan.ALL, 4)
    assert_same(out, x.clamp(-1, 2))


@triton.jit
def product(a_ptr, b_ptr, out_ptr, PRECISION: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    out = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision=PRECISION, out_dtype=tl.float32)
    tl.store(out_ptr + at, out)


def multiplied(a: Tensor, b: Tensor, precision: str = "ieee") -> Tensor:
    out = torch.empty(a.shape)
    product[(1,)](a, b, out, precision, a.shape[0])
    return out


def dot_of_16_and_8_bit_floats_accumulates_in_float32() -> None:
    for dtype in (torch.bfloat16, torch.float16, *LARGEST):
        a, b = torch.randn(2, 32, 32).to(dtype)
        torch.testing.assert_close(multiplied(a, b), a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def a_dot_and_its_transpose_are_the_same_numbers() -> None:
    a, b = 4000 * torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(3))
    there, back = multiplied(a, b), multiplied(b.t().contiguous(), a.t().contiguous())
    assert torch.equal(there, back.t())


def dot_of_float32_loses_bits_to_tf32_unless_asked_otherwise() -> None:
    a, b = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(3))
    exact = a.double() @ b.double()
    for precision in ("ieee", "tf32x3", "bf16x6"):
        assert (multiplied(a, b, precision) - exact).norm() / exact.norm() < 1e-6
    assert 3e-4 < (multiplied(a, b, "tf32") - exact).norm() / exact.norm() < 1.5e-3


@triton.jit
def added_atomically(x_ptr, out_ptr, found_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    found = tl.atomic_add(out_ptr + i % 2, tl.load(x_ptr + i), mask=i < BLOCK - 1)
    tl.store(found_ptr + i, found)


def atomic_add_on_bfloat16_adds_lanes_that_share_an_address() -> None:
    x = torch.tensor([1, 2, 3, 4, 5, 6, 7, 8], dtype=torch.bfloat16)
    out, found = torch.zeros(2, dtype=torch.bfloat16), torch.empty_like(x)
    added_atomically[(1,)](x, out, found, 8)
    assert out.tolist() == [16, 12]
    assert found.tolist()[:7] == [0, 0, 1, 2, 4, 6, 9]
