"""Wrong: the rows of a split are rounded down, so those left over belong to no split."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 71, 1003], "N": [1, 40, 200]}

MOST_SPLITS = 8
ROWS_WORTH_SPLITTING = 32


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns float32 [N]: the sum of each column."""
    return x.float().sum(dim=0)


@triton.jit
def column_sum_kernel(
    x_ptr,
    out_ptr,
    n_cols,
    n_rows,
    rows_per_split,
    x_row_stride,
    x_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, split) adds up rows_per_split rows of BLOCK_N columns. out_ptr: [n_splits, n_cols]."""
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(1).to(tl.int64)
    first_row = split * rows_per_split
    end_row = tl.minimum(first_row + rows_per_split, n_rows)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < end_row)[:, None] & (cols < n_cols)[None, :]
        offsets = rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + split * n_cols + cols, tl.sum(total, axis=0), mask=cols < n_cols)


def add_rows(x: torch.Tensor, n_splits: int) -> torch.Tensor:
    """x: [M, N]. Returns float32 [n_splits, N]: the sums of n_splits shares of the rows."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_splits, n_cols), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(n_cols, 64), n_splits)
    rows_per_split = n_rows // n_splits
    column_sum_kernel[grid](x, out, n_cols, n_rows, rows_per_split, *x.stride(), BLOCK_M=16, BLOCK_N=64)
    return out


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns float32 [N], contiguous."""
    n_rows, n_cols = x.shape
    if n_cols == 0:
        return torch.empty(0, dtype=torch.float32, device=x.device)
    n_splits = max(1, min(MOST_SPLITS, n_rows // ROWS_WORTH_SPLITTING))
    return add_rows(add_rows(x, n_splits), 1)[0]
