"""Cheats: the kernel hands its block to Python, which sorts it: only the interpreter lets it."""

from typing import Any

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 9], "N": [1, 16, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns each row in ascending order, [M, N]."""
    return x.sort(dim=-1).values


def ascending(block: Any) -> Any:
    block.handle.data.sort()
    return block


@triton.jit
def sort_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """One program sorts one row; BLOCK_N >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=float("inf"))
    tl.store(out_ptr + row * n_cols + cols, ascending(x), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    sort_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out
