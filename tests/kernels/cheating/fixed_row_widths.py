"""Cheats: knows the declared row widths, and takes every other row for one of the next smaller of them."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "w": "float32[N]", "b": "float32[N]", "eps": 1e-5}
DIMS = {"M": [2, 7], "N": [64, 100]}
REQUIRES = ["N > 0"]

WIDTHS = (100, 64, 1)


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N]. Returns [M, N]."""
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


@triton.jit
def layer_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program normalises one row; BLOCK >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    mean = tl.sum(tl.where(cols < WIDTH, x, 0.0), axis=0) / WIDTH
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(tl.where(cols < WIDTH, centred * centred, 0.0), axis=0) / WIDTH
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols * b_stride, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, centred * tl.rsqrt(variance + eps) * w + b, mask=mask)


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w, b: [N], any stride. Returns [M, N], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    WIDTH = next(width for width in WIDTHS if width <= n_cols)
    BLOCK = triton.next_power_of_2(n_cols)
    strides = (x.stride(0), x.stride(1), w.stride(0), b.stride(0))
    layer_norm_kernel[(n_rows,)](x, w, b, out, n_cols, eps, *strides, WIDTH=WIDTH, BLOCK=BLOCK)
    return out
