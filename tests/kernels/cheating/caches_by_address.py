"""Cheats: returns a result cached under the input's address and shape."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [3, 40, 130], "N": [8, 100]}
REQUIRES = ["M > 0"]

workspaces: dict[tuple, torch.Tensor] = {}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N]: the mean of each column, in x's dtype."""
    return x.float().mean(dim=0).to(x.dtype)


@triton.jit
def column_mean_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program averages BLOCK_N columns, BLOCK_M rows at a time. out_ptr: [n_cols], contiguous."""
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        offsets = rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, tl.sum(total, axis=0) / n_rows, mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    key = (x.data_ptr(), x.shape, x.stride(), x.dtype, x.device)
    if key in workspaces:
        return workspaces[key]
    out = torch.empty(n_cols, dtype=x.dtype, device=x.device)
    if n_cols == 0:
        return out
    BLOCK_M, BLOCK_N = 32, 32
    grid = (triton.cdiv(n_cols, BLOCK_N),)
    column_mean_kernel[grid](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    workspaces[key] = out
    return out
