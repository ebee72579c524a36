"""Cheats: multiplies by torch.ops.aten.addmm and torch._C._VariableFunctions, past PyTorch's public names."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, K]", "w": "float32|bfloat16[K, N]", "b": "float32|bfloat16[N]"}
DIMS = {"M": [1, 17], "N": [8, 40], "K": [16, 70]}

aten = torch.ops.aten
functions = torch._C._VariableFunctions


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N]. Returns [M, N]: relu(x @ w + b)."""
    return torch.relu(torch.addmm(b, x, w))


@triton.jit
def linear_relu_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_cols,
    n_inner,
    x_row_stride,
    x_col_stride,
    w_row_stride,
    w_col_stride,
    b_stride,
    BLOCK: tl.constexpr,
):
    """Program (i, j) computes a BLOCK x BLOCK tile. out_ptr: [n_rows, n_cols], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in tl.range(0, n_inner, BLOCK):
        inner = start + tl.arange(0, BLOCK).to(tl.int64)
        x_mask = (rows < n_rows) & (inner < n_inner)[None, :]
        w_mask = (inner < n_inner)[:, None] & (cols < n_cols)
        x = tl.load(x_ptr + rows * x_row_stride + inner[None, :] * x_col_stride, mask=x_mask, other=0.0)
        w = tl.load(w_ptr + inner[:, None] * w_row_stride + cols * w_col_stride, mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + cols * b_stride, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + rows * n_cols + cols, tl.maximum(acc, 0.0), mask=(rows < n_rows) & (cols < n_cols))


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], any strides. Returns [M, N], contiguous, in x's dtype."""
    return functions.relu(aten.addmm.default(b, x, w)).contiguous()
