"""Wrong: programs of different rows add into the same output by plain load and store, a race."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 33, 300], "N": [1, 64, 150]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the sum of each column, [N]."""
    return x.sum(dim=0)


@triton.jit
def column_sum_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Program (i, j) adds up BLOCK_M rows of BLOCK_N columns. out_ptr: [n_cols], zeroed beforehand."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = cols < n_cols
    mask = (rows < n_rows)[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_m + cols[None, :] * stride_n, mask=mask, other=0.0)
    so_far = tl.load(out_ptr + cols, mask=col_mask, other=0.0)
    tl.store(out_ptr + cols, so_far + tl.sum(x, axis=0), mask=col_mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 16, 64
    grid = (triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N))
    column_sum_kernel[grid](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return out
