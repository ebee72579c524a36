"""Wrong: the axis of the bias is chosen by its length, which fails where x is square."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "b": "float32|bfloat16[M]"}
DIMS = {"M": [6, 20], "N": [6, 20, 100]}


def reference(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; b: [M]. Returns [M, N]: relu(x + b), b[m] along row m, in x's dtype."""
    return torch.relu(x + b[:, None])


@triton.jit
def bias_relu_kernel(
    x_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    x_row_stride,
    x_col_stride,
    b_row_stride,
    b_col_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + row * b_row_stride + cols * b_col_stride, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, tl.where(x + b < 0, 0.0, x + b), mask=mask)


def run(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides; b: [M], any stride. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    along_columns = b.shape[0] == n_cols
    b_strides = (0, b.stride(0)) if along_columns else (b.stride(0), 0)
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    bias_relu_kernel[grid](x, b, out, n_cols, *x.stride(), *b_strides, BLOCK_N=BLOCK_N)
    return out
