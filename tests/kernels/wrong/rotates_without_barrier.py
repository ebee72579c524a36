"""Wrong: a row is stored to memory and read back in reverse, with no barrier between the two loops."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 9], "N": [16, 100, 300]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns x + exp(x) with each row reversed."""
    return (x + x.exp()).flip(1)


@triton.jit
def flip_kernel(x_ptr, scratch_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    """scratch_ptr, out_ptr: [rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + cols.to(tl.int64) * col_stride, mask=cols < n_cols)
        tl.store(scratch_ptr + row * n_cols + cols, tl.exp(x), mask=cols < n_cols)
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + cols.to(tl.int64) * col_stride, mask=cols < n_cols)
        y = tl.load(scratch_ptr + row * n_cols + cols, mask=cols < n_cols)
        tl.store(scratch_ptr + row * n_cols + cols, x + y, mask=cols < n_cols)
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        y = tl.load(scratch_ptr + row * n_cols + (n_cols - 1 - cols), mask=cols < n_cols)
        tl.store(out_ptr + row * n_cols + cols, y, mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        flip_kernel[(x.shape[0],)](x, torch.empty_like(out), out, x.shape[1], *x.stride(), BLOCK=64)
    return out
