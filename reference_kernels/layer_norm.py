"""Layer normalisation of rows: out[m, n] = (x[m, n] - mean[m]) / sqrt(var[m] + eps) * w[n] + b[n].

x and out are [M, N], w and b are [N]; mean and var (biased) are those of a row of x; Ba, Kiros and Hinton,
2016, arXiv:1607.06450. A row of up to ONE_PASS_COLS columns stays in registers: x is read once, out written
once, and the variance is that of the centred row. A longer row is read twice: once for mean and variance by
Welford's recurrence, once more, from the end backwards, to normalise it while its tail is still in the L2
cache. Neither way subtracts large squares, so a large mean costs no more digits than it must. w and b stay
in cache. Everything is computed in float32 and rounded once, to x's dtype.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[M, N]",
    "w": "float32|bfloat16|float16[N]",
    "b": "float32|bfloat16|float16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 8192


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N], in x's dtype. Returns [M, N] in x's dtype."""
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


@triton.jit
def layer_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. w_ptr, b_ptr: [n_cols], elements w_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    # A large mean is rounded coarsely: what it left behind is taken out as well.
    remainder = tl.sum(centred, axis=1, keep_dims=True) / n_cols
    centred = tl.where(mask, centred - remainder, 0.0)
    variance = tl.sum(centred * centred, axis=1, keep_dims=True) / n_cols
    w = tl.load(w_ptr + cols * w_stride, mask=cols < n_cols, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * b_stride, mask=cols < n_cols, other=0.0).to(tl.float32)
    out = centred * tl.rsqrt(variance + eps) * w + b
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)


@triton.jit
def layer_norm_long_rows_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    BLOCK_N: tl.constexpr,
):
    """One program normalises one row, BLOCK_N columns at a time.

    x_ptr: [n_rows, n_cols], any strides. w_ptr, b_ptr: [n_cols], elements w_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    n_blocks = tl.cdiv(n_cols, BLOCK_N)

    # A mean and squared deviations for each lane, its columns BLOCK_N apart: the loop needs no barrier.
    lane_mean = tl.zeros((BLOCK_N,), tl.float32)
    lane_squares = tl.zeros((BLOCK_N,), tl.float32)
    for block in tl.range(0, n_blocks):
        cols = block * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0, eviction_policy="evict_last")
        x = x.to(tl.float32)
        delta = tl.where(mask, x - lane_mean, 0.0)
        lane_mean += delta / (block + 1)
        lane_squares += delta * (x - lane_mean)
    lane_count = tl.cdiv(n_cols - lanes, BLOCK_N).to(tl.float32)
    mean = tl.sum(lane_mean * lane_count, axis=0) / n_cols
    offset = lane_mean - mean
    variance = tl.sum(lane_squares + offset * offset * lane_count, axis=0) / n_cols
    reciprocal_std = tl.rsqrt(variance + eps)

    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + cols * w_stride, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols * b_stride, mask=mask).to(tl.float32)
        out = (x - mean) * reciprocal_std * w + b
        tl.store(out_row_ptr + cols, out, mask=mask, cache_modifier=".cs")


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w, b: [N], any stride. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (x.stride(0), x.stride(1), w.stride(0), b.stride(0))
    if n_cols > ONE_PASS_COLS:
        layer_norm_long_rows_kernel[(n_rows,)](
            x, w, b, out, n_cols, eps, *strides, BLOCK_N=8192, num_warps=16
        )
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = max(BLOCK_N // 512, 4)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    layer_norm_kernel[grid](
        x, w, b, out, n_rows, n_cols, eps, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out
