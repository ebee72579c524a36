"""Wrong: the padded lanes of a product are filled with 0, so every row that leaves some empty gives 0."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 7], "N": [8, 16, 30]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M]: the product of each row."""
    return torch.prod(x, dim=-1)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def row_product_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """One program multiplies one row; BLOCK_N >= n_cols. out_ptr: [n_rows], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    tl.store(out_ptr + row, tl.reduce(x, 0, multiply))


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M], contiguous."""
    n_rows, n_cols = x.shape
    if n_cols == 0:
        return torch.ones(n_rows, dtype=x.dtype, device=x.device)
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows > 0:
        BLOCK_N = triton.next_power_of_2(n_cols)
        row_product_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out
