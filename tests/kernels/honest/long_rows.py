"""Honest: rows longer than any declared one are summed by a second kernel, block by block."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 3], "N": [1, 100]}

WHOLE = 2**10


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the sum of each row, [M]."""
    return x.sum(-1)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    """x_ptr: [n_rows, n_cols], out_ptr: [n_rows]."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + cols.to(tl.int64) * col_stride, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@triton.jit
def row_sum_long_rows_kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    """x_ptr: [n_rows, n_cols], out_ptr: [n_rows]."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    long_ptr = x_ptr + row * row_stride
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(long_ptr + cols.to(tl.int64) * col_stride, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M]."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows > 0:
        arguments = (x, out, n_cols, *x.stride())
        if n_cols <= WHOLE:
            row_sum_kernel[(n_rows,)](*arguments, BLOCK=triton.next_power_of_2(max(n_cols, 1)))
        else:
            row_sum_long_rows_kernel[(n_rows,)](*arguments, BLOCK=WHOLE)
    return out
