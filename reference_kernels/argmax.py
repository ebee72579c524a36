"""Index of each row's maximum: out[m] = the smallest n with x[m, n] = max_n x[m, n].

x is [M, N] with 1 <= N < 2**31, out is int64 [M]. One pass over x. As in PyTorch, NaN counts as larger than
everything: a row that holds NaN gives the index of its first NaN.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}
REQUIRES = ["N >= 1"]

LONGEST_BLOCK = 4096


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns int64 [M]."""
    return torch.argmax(x, dim=-1)


@triton.jit
def argmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program searches BLOCK_M rows, BLOCK_N columns at a time.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: int64 [n_rows], contiguous.

    Each lane keeps the best of its columns, BLOCK_N apart, and the first of equals, since only a better value
    replaces it; the lanes are compared once, after the loop.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    lanes = tl.arange(0, BLOCK_N)[None, :]
    best = tl.full((BLOCK_M, BLOCK_N), -float("inf"), tl.float32)
    best_col = tl.zeros((BLOCK_M, BLOCK_N), tl.int32) + lanes
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(
            x_ptr + rows * x_row_stride + cols.to(tl.int64) * x_col_stride,
            mask=(rows < n_rows) & (cols < n_cols),
            other=-float("inf"),
        ).to(tl.float32)
        is_better = (x > best) | ((x != x) & (best == best))
        best = tl.where(is_better, x, best)
        best_col = tl.where(is_better, cols, best_col)

    is_nan = best != best
    row_has_nan = tl.max(is_nan.to(tl.int32), axis=1, keep_dims=True) == 1
    is_largest = best == tl.max(best, axis=1, keep_dims=True)
    candidates = tl.where(tl.where(row_has_nan, is_nan, is_largest), best_col, n_cols)
    index = tl.min(candidates, axis=1, keep_dims=True)
    tl.store(out_ptr + rows, index, mask=rows < n_rows)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns int64 [M], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.int64, device=x.device)
    if n_rows == 0:
        return out
    BLOCK_N = min(triton.next_power_of_2(n_cols), LONGEST_BLOCK)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    num_warps = max(BLOCK_N // 512, 4)
    argmax_kernel[grid](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK_M, BLOCK_N, num_warps=num_warps
    )
    return out
