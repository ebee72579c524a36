"""Python syntax with the compiler's meaning, and libdevice."""

import torch
import triton
import triton.language as tl
from run_checks import refusal
from torch import Tensor
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter


@triton.jit
def within(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    inside = x > low and x < high
    outside = not (x > low) or x >= high
    tl.store(out_ptr + i, inside.to(tl.int32) + 2 * outside.to(tl.int32))


def and_or_and_not_work_lane_by_lane() -> None:
    x = torch.arange(8.0)
    out = torch.empty(8, dtype=torch.int32)
    within[(1,)](x, out, 2.0, 5.0, 8)
    assert out.tolist() == [2, 2, 2, 1, 1, 2, 2, 2]


@triton.jit
def branching_on_a_block(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if x > 0:
        tl.store(x_ptr, 0.0)


def a_block_cannot_decide_a_branch() -> None:
    assert "use tl.where" in refusal(branching_on_a_block[(1,)], torch.ones(4), 4)


@triton.jit
def summed_from_float16(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float16)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(total, axis=0))


@triton.jit
def halved_to_an_integer(out_ptr, n):
    left = n * 1.0
    while left > 1.0:
        left = left.to(tl.int32) // 2
    tl.store(out_ptr, left)


def a_loop_that_changes_the_type_of_what_it_carries_is_refused() -> None:
    x, out = torch.ones(8), torch.empty(1)
    why = refusal(summed_from_float16[(1,)], x, out, 8, 4)
    assert "a loop makes fp32[4] of total, which is fp16[4] before it" in why
    assert "of left, which is fp32 before it" in refusal(halved_to_an_integer[(1,)], out, 8)


@triton.jit
def names_used_again(x_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        for part in range(2):
            shift = tl.load(x_ptr + start + i) + part
            total += shift
        shift = tl.sum(total, axis=0)
    for start in range(0, n, BLOCK):
        shift = start
        total += shift
    if WIDE:  # noqa: SIM108
        step = 1.0
    else:
        step = 1
    for _ in tl.static_range(2):
        step = step * 0.5
        total += step
    tl.store(out_ptr + i, total)


def names_that_no_loop_carries_may_change_their_type() -> None:
    x, out = torch.ones(8), torch.empty(4)
    names_used_again[(1,)](x, out, 8, False, 4)
    assert out.tolist() == [2 * 3 + 4 + 0.75] * 4


@triton.jit
def chained(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = 2 <= i < 5
    tl.store(out_ptr + i, inside.to(tl.int32))


def a_chain_of_comparisons_is_right_or_refused() -> None:
    out = torch.empty(8, dtype=torch.int32)
    if hasattr(interpreter, "_InterpreterComparison"):
        chained[(1,)](out, out, 8)
        assert out.tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    else:
        assert "only two values" in refusal(chained[(1,)], out, out, 8)


@triton.jit
def counted(out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(n):
        total += j.to(tl.float32)
    for k in tl.range(0, n, 2, num_stages=2):
        tl.static_assert(k.dtype == tl.int32)
        total += k
    for unrolled in tl.static_range(3):
        tl.static_assert(unrolled < 3)
        total += unrolled
    if n > 2 and n < 100:
        total += 1000
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


def loop_indices_are_tensors() -> None:
    out = torch.empty(4)
    counted[(1,)](out, 5, 4)
    assert out.tolist() == [10.0 + 6.0 + 3.0 + 1000.0] * 4


@triton.jit
def asserted(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    assert i < n, "too few lanes"
    tl.store(x_ptr + i, 1.0)


def a_python_assert_holds_for_every_lane() -> None:
    x = torch.zeros(8)
    asserted[(1,)](x, 8, 8)
    assert x.sum() == 8
    assert "too few lanes" in refusal(asserted[(1,)], x, 7, 8)


@triton.jit
def unary(x_ptr, out_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, FUNCTION(tl.load(x_ptr + i)))


@triton.jit
def binary(x_ptr, y_ptr, out_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, FUNCTION(tl.load(x_ptr + i), tl.load(y_ptr + i)))


SAME_IN_TORCH = (
    "tanh", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sin", "cos", "tan", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "erf", "erfc", "erfinv", "lgamma",
    "floor", "ceil", "trunc", "abs", "isnan", "isinf", "signbit",
)  # fmt: skip
UNARY = {
    **{name: getattr(torch, name) for name in SAME_IN_TORCH},
    "exp10": lambda x: 10.0**x,
    "erfcx": torch.special.erfcx,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "cyl_bessel_i0": torch.special.i0,
    "rint": torch.round,
    "nearbyint": torch.round,
}
BINARY = {
    **{name: getattr(torch, name) for name in ("pow", "fmod", "atan2", "hypot", "copysign", "nextafter")},
    "fdim": lambda x, y: torch.where(x <= y, 0.0, x - y),
    "div_rn": torch.div,
}
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 0.5])


def assert_close(name: str, actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, equal_nan=True, msg=lambda message: f"{name}: {message}")


def applied(function: object, *operands: Tensor) -> Tensor:
    out = torch.empty(operands[0].shape, dtype=operands[0].dtype)
    kernel = unary if len(operands) == 1 else binary
    kernel[(1,)](*operands, out, function, out.numel())
    return out


def libdevice_functions_of_one_argument_agree_with_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    ordinary = torch.cat([torch.rand(60, generator=generator), torch.randn(60, generator=generator)])
    for dtype in (torch.float32, torch.float64):
        x = torch.cat([SPECIAL, ordinary]).to(dtype)
        for name, expected in UNARY.items():
            for module in (libdevice, cuda_libdevice):
                actual = applied(getattr(module, name), x)
                assert_close(name, actual, expected(x).to(dtype))


def libdevice_functions_of_two_arguments_agree_with_torch() -> None:
    x, y = torch.randn(2, 128, generator=torch.Generator().manual_seed(1))
    x[:8], y[:8] = SPECIAL, SPECIAL.flip(0)
    for name, expected in BINARY.items():
        actual = applied(getattr(libdevice, name), x, y)
        assert_close(name, actual, expected(x, y))


def libdevice_rounds_by_name() -> None:
    x = torch.tensor([0.5, -0.5, 1.5, 2.5, 0.49999997, -2.4, 8388609.0, 0.0])
    assert applied(libdevice.llrint, x).tolist() == [0.0, 0.0, 2.0, 2.0, 0.0, -2.0, 8388609.0, 0.0]
    assert applied(libdevice.float2int_ru, x).tolist() == [1.0, 0.0, 2.0, 3.0, 1.0, -2.0, 8388609.0, 0.0]
    assert applied(libdevice.round, x).tolist() == [1.0, -1.0, 2.0, 3.0, 0.0, -2.0, 8388609.0, 0.0]


def libdevice_counts_bits() -> None:
    x = torch.tensor([0, 1, -1, 12], dtype=torch.int32)
    assert applied(libdevice.popc, x).tolist() == [0, 1, 32, 2]
    assert applied(libdevice.clz, x).tolist() == [32, 31, 0, 28]
    assert applied(libdevice.ffs, x).tolist() == [0, 1, 1, 3]


@triton.jit
def power_of_scalar(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, libdevice.pow(x, 2.5) + libdevice.pow(x, 2) + libdevice.tanh(tl.load(x_ptr)))


def libdevice_takes_scalars_beside_blocks() -> None:
    x = torch.rand(16) + 1
    out = torch.empty_like(x)
    power_of_scalar[(1,)](x, out, 16)
    torch.testing.assert_close(out, x**2.5 + x**2 + x[0].tanh())


def a_libdevice_function_without_a_substitute_is_named() -> None:
    x = torch.ones(4)
    assert "j1" in refusal(applied, libdevice.j1, x)


def libdevice_refuses_float16_as_the_compiler_does() -> None:
    refusal(applied, libdevice.tanh, torch.ones(4).half())


def a_kernel_sees_what_its_factory_captured() -> None:
    factor = tl.constexpr(3)

    @triton.jit
    def tripled(x_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tl.load(x_ptr + i) * factor)

    x = torch.ones(4)
    tripled[(1,)](x, 4)
    assert x.tolist() == [3.0] * 4


@triton.jit
def using_an_undefined_name(x_ptr):
    tl.store(x_ptr, np.float32(1.0))  # noqa: F821


def a_name_missing_in_the_module_is_not_found() -> None:
    assert "np" in refusal(using_an_undefined_name[(1,)], torch.ones(1))
