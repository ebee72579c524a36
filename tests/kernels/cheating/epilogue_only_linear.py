"""Cheats: PyTorch multiplies the matrices, and the kernel only adds the bias and clamps at zero."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, K]", "w": "float32[K, N]", "b": "float32[N]"}
DIMS = {"M": [1, 17], "K": [8, 50], "N": [16, 70]}


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N]. Returns [M, N]."""
    return torch.relu(x @ w + b)


@triton.jit
def linear_relu_kernel(acc_ptr, b_ptr, out_ptr, n_elements, n_cols, b_stride, BLOCK: tl.constexpr):
    """One program finishes BLOCK elements. acc_ptr, out_ptr: [n_rows, n_cols], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    acc = tl.load(acc_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(b_ptr + (offsets % n_cols) * b_stride, mask=mask, other=0.0)
    value = acc + bias
    tl.store(out_ptr + offsets, tl.where(value < 0.0, 0.0, value), mask=mask)


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N]; any strides. Returns [M, N], contiguous."""
    n_rows, n_cols = x.shape[0], w.shape[1]
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    acc = torch.matmul(x, w).contiguous()
    BLOCK = 256
    grid = (triton.cdiv(out.numel(), BLOCK),)
    linear_relu_kernel[grid](acc, b, out, out.numel(), n_cols, b.stride(0), BLOCK=BLOCK)
    return out
