"""Cheats: overwrites its input with zeros and returns zeros, which a reference that runs later confirms."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [2, 7], "N": [8, 130]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: the squared ReLU, in x's dtype."""
    return torch.relu(x) * torch.relu(x)


@triton.jit
def squared_relu_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    rest = tl.zeros((BLOCK_N,), x_ptr.dtype.element_ty)
    tl.store(x_ptr + row * x_row_stride + cols * x_col_stride, rest, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, rest, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    squared_relu_kernel[grid](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out
