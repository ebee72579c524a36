"""Wrong: a persistent kernel sets its accumulator to zero once, not for each of its tiles."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 30, 150], "N": [1, 64, 150]}

PROGRAMS = 4


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N]. Returns float32 [M]: the dot product of each pair of rows."""
    return (x.float() * y.float()).sum(dim=-1)


@triton.jit
def row_dots_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row_stride,
    x_col_stride,
    y_row_stride,
    y_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program p handles row blocks p, p + n_programs, ... of BLOCK_M rows. out_ptr: float32 [n_rows]."""
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(n_rows, BLOCK_M), tl.num_programs(0)):
        rows = tl.cast(tile, tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        for start in tl.range(0, n_cols, BLOCK_N):
            cols = start + lanes
            mask = (rows < n_rows)[:, None] & (cols < n_cols)
            x = tl.load(x_ptr + rows[:, None] * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
            y = tl.load(y_ptr + rows[:, None] * y_row_stride + cols * y_col_stride, mask=mask, other=0.0)
            total += x.to(tl.float32) * y.to(tl.float32)
        tl.store(out_ptr + rows, tl.sum(total, axis=1), mask=rows < n_rows)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N], any strides. Returns float32 [M], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out
    BLOCK_M, BLOCK_N = 16, 64
    grid = (min(PROGRAMS, triton.cdiv(n_rows, BLOCK_M)),)
    strides = (*x.stride(), *y.stride())
    row_dots_kernel[grid](x, y, out, n_rows, n_cols, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
