"""Softmax along rows: out[m, n] = exp(x[m, n] - max_n x[m, n]) / sum_n exp(x[m, n] - max_n x[m, n]).

x and out are [M, N]. A row of up to ONE_PASS_COLS columns stays in registers: x is read once, out written
once. A longer row is read twice: once for its maximum and sum (the online normaliser of Milakov and
Gimelshein, 2018, arXiv:1805.02867), once more, from the end backwards, to normalise it while its tail is
still in the L2 cache. Everything is computed in float32 and rounded once, to x's dtype. As in PyTorch, a
row that holds NaN or +inf, or nothing but -inf, becomes NaN.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 8192


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N] in x's dtype."""
    return torch.softmax(x, dim=-1)


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * n_cols + cols, numerator / denominator, mask=mask)


@triton.jit
def softmax_long_rows_kernel(
    x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, LANES: tl.constexpr, VECTOR: tl.constexpr
):
    """One program normalises one row, LANES * VECTOR columns at a time.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.

    Each lane keeps a maximum and a sum of its own over VECTOR neighbouring columns of every block, so the
    first loop needs no barrier, and rescales a sum once for VECTOR exponentials.
    """
    BLOCK_N: tl.constexpr = LANES * VECTOR
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, LANES).to(tl.int64)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]

    lane_max = tl.full((LANES,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((LANES,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(
            x_row_ptr + cols * x_col_stride, mask=mask, other=-float("inf"), eviction_policy="evict_last"
        )
        x = x.to(tl.float32)
        new_max = tl.maximum(lane_max, tl.max(x, axis=1))
        # -inf - -inf is NaN: a lane that has seen only -inf sums to zero instead.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    row_sum = tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first")
        out = tl.exp(x.to(tl.float32) - row_max) / row_sum
        tl.store(out_row_ptr + cols, out, mask=mask, cache_modifier=".cs")


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if n_cols > ONE_PASS_COLS:
        softmax_long_rows_kernel[(n_rows,)](
            x, out, n_cols, x.stride(0), x.stride(1), LANES=1024, VECTOR=8, num_warps=16
        )
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = max(BLOCK_N // 512, 4)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    softmax_kernel[grid](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK_M, BLOCK_N, num_warps=num_warps
    )
    return out
