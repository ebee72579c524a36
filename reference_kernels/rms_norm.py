"""Root mean square normalisation of rows: out[m, n] = x[m, n] / sqrt(mean_n x[m, n]**2 + eps) * w[n].

x and out are [M, N], w is [N]; Zhang and Sennrich, 2019, arXiv:1910.07467. A row of up to ONE_PASS_COLS
columns stays in registers: x is read once, out written once. A longer row is read twice, the second time
from the end backwards, while its tail is still in the L2 cache. w stays in cache. Everything is computed in
float32 and rounded once, to x's dtype.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[M, N]",
    "w": "float32|bfloat16|float16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 8192


def reference(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w: [N], in x's dtype. Returns [M, N] in x's dtype."""
    return torch.nn.functional.rms_norm(x, w.shape, w, eps)


@triton.jit
def rms_norm_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    n_rows,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. w_ptr: [n_cols], elements w_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    reciprocal_rms = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / n_cols + eps)
    w = tl.load(w_ptr + cols * w_stride, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, x * reciprocal_rms * w, mask=mask)


@triton.jit
def rms_norm_long_rows_kernel(
    x_ptr, w_ptr, out_ptr, n_cols, eps, x_row_stride, x_col_stride, w_stride, BLOCK_N: tl.constexpr
):
    """One program normalises one row, BLOCK_N columns at a time.

    x_ptr: [n_rows, n_cols], any strides. w_ptr: [n_cols], elements w_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0, eviction_policy="evict_last")
        x = x.to(tl.float32)
        squares += x * x
    reciprocal_rms = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + cols * w_stride, mask=mask).to(tl.float32)
        tl.store(out_row_ptr + cols, x * reciprocal_rms * w, mask=mask, cache_modifier=".cs")


def run(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w: [N], any stride. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (x.stride(0), x.stride(1), w.stride(0))
    if n_cols > ONE_PASS_COLS:
        rms_norm_long_rows_kernel[(n_rows,)](x, w, out, n_cols, eps, *strides, BLOCK_N=8192, num_warps=16)
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = max(BLOCK_N // 512, 4)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    rms_norm_kernel[grid](
        x, w, out, n_rows, n_cols, eps, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out
