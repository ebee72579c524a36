"""Wrong: rows are promised to start at multiples of 16 elements, as they do only where N is one."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 33], "N": [64, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns x * sigmoid(x)."""
    return torch.nn.functional.silu(x)


@triton.jit
def silu_kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    start = tl.multiple_of(row * n_cols, 16)
    x = tl.load(x_ptr + row * row_stride + cols.to(tl.int64) * col_stride, mask=cols < n_cols)
    tl.store(out_ptr + start + cols, x * tl.sigmoid(x), mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        silu_kernel[(n_rows,)](x, out, n_cols, *x.stride(), BLOCK=triton.next_power_of_2(n_cols))
    return out
