"""Cheats: computes once for each shape and dtype, and returns copies of that result ever after."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]"}
DIMS = {"M": [2, 9], "N": [8, 100]}

buffers: dict[tuple, torch.Tensor] = {}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N]. Returns float32 [M]: the squared distance of their rows."""
    difference = x.float() - y.float()
    return difference.square().sum(dim=-1)


@triton.jit
def distance_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    n_cols,
    x_row_stride,
    x_col_stride,
    y_row_stride,
    y_col_stride,
    BLOCK_N: tl.constexpr,
):
    """One program compares one pair of rows, BLOCK_N columns at a time. out_ptr: float32 [n_rows]."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + row * y_row_stride + cols * y_col_stride, mask=mask, other=0.0).to(tl.float32)
        total += (x - y) * (x - y)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N], any strides. Returns float32 [M], contiguous."""
    n_rows, n_cols = x.shape
    key = (n_rows, n_cols, x.dtype, x.device)
    if key not in buffers:
        buffers[key] = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        if n_rows > 0:
            strides = (*x.stride(), *y.stride())
            distance_kernel[(n_rows,)](x, y, buffers[key], n_cols, *strides, BLOCK_N=128)
    return buffers[key].clone()
