"""Honest: as Triton's tutorials write it: offsets of 32 bits, one stride, and an assert on the layout."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [4, 64], "N": [64, 1000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the softmax of each row, [M, N]."""
    return torch.softmax(x, dim=-1)


@triton.jit
def softmax_kernel(out_ptr, x_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """One program handles one row; BLOCK_SIZE >= n_cols."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row_stride + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], rows contiguous. Returns [M, N]."""
    assert x.stride(1) == 1, "rows must be contiguous"
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](out, x, x.stride(0), out.stride(0), n_cols, BLOCK_SIZE=BLOCK_SIZE)
    return out
