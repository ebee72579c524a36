"""Reductions and scans: NaN, rounding, custom combine functions."""

import torch
import triton
import triton.language as tl
from run_checks import refusal
from torch import Tensor

NAN = float("nan")


@triton.jit
def reduced(x_ptr, out_ptr, FUNCTION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + r[:, None] * COLUMNS + c[None, :])
    tl.store(out_ptr + r, FUNCTION(x, 1))


def rows_reduced(function: object, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    out = torch.empty(x.shape[0], dtype=dtype or x.dtype)
    reduced[(1,)](x, out, function, *x.shape)
    return out


def max_and_min_drop_nan() -> None:
    x = torch.tensor(
        [[NAN, 1.0, 3.0, 2.0], [NAN, NAN, NAN, NAN], [-5.0, -1.0, NAN, -2.0], [0.0, 1.0, 2.0, 3.0]]
    )
    torch.testing.assert_close(rows_reduced(tl.max, x), torch.tensor([3.0, NAN, -1.0, 3.0]), equal_nan=True)
    torch.testing.assert_close(rows_reduced(tl.min, x), torch.tensor([1.0, NAN, -5.0, 0.0]), equal_nan=True)


def max_and_sum_of_bfloat16_are_those_of_its_values() -> None:
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    assert torch.equal(rows_reduced(tl.max, x), x.max(1).values)
    assert torch.equal(rows_reduced(tl.min, x), x.min(1).values)
    torch.testing.assert_close(rows_reduced(tl.sum, x), x.sum(1), rtol=3e-2, atol=3e-2)


def a_sum_of_16_bit_floats_rounds_after_every_addition() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.rand(64, 1024, generator=torch.Generator().manual_seed(3)).to(dtype)
        total, exact = rows_reduced(tl.sum, x), x.double().sum(1)
        assert (total != exact.to(dtype)).any()
        torch.testing.assert_close(total.double(), exact, rtol=4 * torch.finfo(dtype).eps, atol=0)


@triton.jit
def columns_summed(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + r[:, None] * COLUMNS + c[None, :])
    tl.store(out_ptr + c, tl.sum(x, 0))


def lanes_are_added_in_pairs_along_any_axis() -> None:
    x, out = torch.full((4096, 8), 0.3678), torch.empty(8)
    columns_summed[(1,)](x, out, *x.shape)
    torch.testing.assert_close(out.double(), x.double().sum(0), rtol=1e-6, atol=0)


def argmax_and_argmin_take_the_first_of_equals() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    assert rows_reduced(tl.argmax, x, torch.int32).tolist() == [1, 0]
    assert rows_reduced(tl.argmin, x, torch.int32).tolist() == [3, 0]
    assert rows_reduced(tl.argmax, x.bfloat16(), torch.int32).tolist() == [1, 0]


def argmax_meets_nan_in_the_order_of_a_gpu() -> None:
    x = torch.tensor([[NAN, 1, 3, 2], [1, NAN, 3, 2], [1, 3, NAN, 2], [3, 1, 2, NAN], [NAN] * 4]).repeat(
        2, 1
    )[:8]
    assert rows_reduced(tl.argmax, x, torch.int32).tolist() == [2, 2, 1, 3, 3, 2, 2, 1]


def integers_reduce_exactly() -> None:
    x = torch.randint(-(2**20), 2**20, (4, 32), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    assert torch.equal(rows_reduced(tl.sum, x), x.sum(1).int())
    assert torch.equal(rows_reduced(tl.max, x), x.max(1).values)
    folded = x[:, 0].clone()
    for column in x.T[1:]:
        folded ^= column
    assert torch.equal(rows_reduced(tl.xor_sum, x), folded)


@triton.jit
def over_everything(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + r[:, None] * COLUMNS + c[None, :])
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(x))
    kept = tl.sum(x, axis=0, keep_dims=True)
    tl.store(out_ptr + 2 + c[None, :], kept)
    all_kept = tl.max(x, keep_dims=True)
    tl.store(out_ptr + 2 + COLUMNS + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :], all_kept)


def reductions_over_all_axes_give_a_scalar_and_keep_dims_keeps_them() -> None:
    x = torch.randn(4, 8)
    out = torch.empty(11)
    over_everything[(1,)](x, out, 4, 8)
    torch.testing.assert_close(out, torch.cat([x.sum()[None], x.max()[None], x.sum(0), x.max()[None]]))


@triton.jit
def merge_moments(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def variance(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + r[:, None] * COLUMNS + c[None, :])
    zeros = tl.zeros_like(x)
    mean, m2, n = tl.reduce((x, zeros, zeros + 1), 1, merge_moments)
    tl.store(out_ptr + r, mean)
    tl.store(out_ptr + ROWS + r, m2 / n)


def a_reduction_of_three_blocks_at_once_follows_welford() -> None:
    x = torch.randn(8, 1024) + 100
    out = torch.empty(2, 8)
    variance[(1,)](x, out, 8, 1024)
    torch.testing.assert_close(out, torch.stack([x.mean(1), x.var(1, correction=0)]))


@triton.jit
def larger_with_index(value_a, index_a, value_b, index_b):
    first = value_a > value_b or (value_a == value_b and index_a < index_b)
    return tl.where(first, value_a, value_b), tl.where(first, index_a, index_b)


@triton.jit
def larger_by_branch(a, b):
    if a > b:
        return a
    return b


@triton.jit
def custom_maxima(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    value, index = tl.reduce((x, i), 0, larger_with_index)
    tl.store(out_ptr, value)
    tl.store(out_ptr + 1, index.to(tl.float32))
    tl.store(out_ptr + 2, tl.reduce(x, 0, larger_by_branch))


def and_or_and_branches_work_in_combine_functions() -> None:
    x = torch.randn(256)
    out = torch.empty(3)
    custom_maxima[(1,)](x, out, 256)
    assert out.tolist() == [x.max().item(), float(x.argmax()), x.max().item()]


@triton.jit
def second_of_equals(value_a, index_a, value_b, index_b):
    takes_b = value_b >= value_a
    return tl.where(takes_b, value_b, value_a), tl.where(takes_b, index_b, index_a)


@triton.jit
def second_by_branch(value_a, index_a, value_b, index_b):
    if value_b >= value_a:
        return value_b, index_b
    return value_a, index_a


@triton.jit
def last_by_order(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr, tl.reduce((x, i), 0, second_of_equals)[1])
    tl.store(out_ptr + 1, tl.reduce((x, i), 0, second_by_branch)[1])


def operands_of_a_reduction_come_in_no_order() -> None:
    out = torch.empty(2, dtype=torch.int32)
    last_by_order[(1,)](torch.zeros(8), out, 8)
    assert 7 not in out.tolist()


@triton.jit
def larger_in_float32(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum_of(x_ptr, out_ptr, SCANS: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if SCANS:
        tl.store(out_ptr + tl.arange(0, BLOCK), tl.associative_scan(x, 0, larger_in_float32))
    else:
        tl.store(out_ptr, tl.reduce(x, 0, larger_in_float32))


def a_combine_function_that_makes_another_dtype_of_its_operands_is_refused() -> None:
    for scans in (False, True):
        x = torch.randn(16)
        out = torch.empty(16)
        maximum_of[(1,)](x, out, scans, 16)
        assert out[-1 if scans else 0] == x.max()
        assert "makes fp32 of bf16" in refusal(maximum_of[(1,)], x.bfloat16(), out, scans, 16)


@triton.jit
def affine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def scans(a_ptr, b_ptr, out_ptr, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    _, h = tl.associative_scan((a, b), 0, affine, reverse=REVERSE)
    tl.store(out_ptr + i, h)
    tl.store(out_ptr + BLOCK + i, tl.cumsum(b, 0, reverse=REVERSE))
    tl.store(out_ptr + 2 * BLOCK + i, tl.cumprod(a, 0, reverse=REVERSE))


def scans_follow_the_recurrence_in_both_directions() -> None:
    generator = torch.Generator().manual_seed(2)
    a, b = torch.rand(128, generator=generator) * 0.2 + 0.9, torch.randn(128, generator=generator)
    for reverse in (False, True):
        out = torch.empty(3, 128)
        scans[(1,)](a, b, out, reverse, 128)
        if reverse:
            out = out.flip(1)
        x, y = (t.flip(0) if reverse else t for t in (a, b))
        state, states = torch.zeros(()), []
        for gain, step in zip(x, y, strict=True):
            state = gain * state + step
            states.append(state)
        expected = torch.stack([torch.stack(states), y.cumsum(0), x.cumprod(0)])
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@triton.jit
def running_sums(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = r[:, None] * COLUMNS + c[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 1))


def cumsum_of_bfloat16_adds_values() -> None:
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(2)).bfloat16()
    out = torch.empty_like(x)
    running_sums[(1,)](x, out, 4, 32)
    torch.testing.assert_close(out.double(), x.double().cumsum(1), rtol=3e-2, atol=0.1)


@triton.jit
def sorted_rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DESCENDING: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = r[:, None] * COLUMNS + c[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at), descending=DESCENDING))


def sort_orders_a_thousand_values() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        x = (torch.randn(2, 1024) * 1000).to(dtype)
        for descending in (False, True):
            out = torch.empty_like(x)
            sorted_rows[(1,)](x, out, 2, 1024, descending)
            assert torch.equal(out, x.sort(1, descending=descending).values)
