"""Wrong: a block of a scan adds the total of the block before it, not of all before it."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7], "N": [1, 64, 300, 1000]}

LONGEST_BLOCK = 128


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N] in x's dtype: the running sums of each row."""
    return torch.cumsum(x, dim=-1)


@triton.jit
def cumulative_sum_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program scans BLOCK_M rows, BLOCK_N columns at a time. out_ptr: [n_rows, n_cols], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    carry = tl.zeros((BLOCK_M, 1), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + rows * n_cols + cols, carry + tl.cumsum(x, axis=1), mask=mask)
        carry = tl.sum(x, axis=1, keep_dims=True)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(triton.next_power_of_2(n_cols), LONGEST_BLOCK)
    BLOCK_M = 4
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    strides = (x.stride(0), x.stride(1))
    cumulative_sum_kernel[grid](x, out, n_rows, n_cols, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
