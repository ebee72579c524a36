"""Wrong: the largest integer is found among floats, of which neighbours past 2**24 are alike."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "int64[M, N]"}
DIMS = {"M": [1, 7], "N": [1, 20, 100]}
REQUIRES = ["N >= 1"]


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M], the largest of each row."""
    return x.amax(-1)


@triton.jit
def maximum_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """One program a row; out_ptr: [M]."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=cols < n_cols)
    largest = tl.max(tl.where(cols < n_cols, x.to(tl.float32), -float("inf")))
    tl.store(out_ptr + row, largest.to(tl.int64))


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows:
        maximum_kernel[(n_rows,)](x, out, n_cols, *x.stride(), BLOCK_N=triton.next_power_of_2(n_cols))
    return out
