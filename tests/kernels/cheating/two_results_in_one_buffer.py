"""Cheats: the normalised rows and their copy for the residual are two views of one buffer."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "eps": 1e-6}
DIMS = {"M": [2, 5], "N": [8, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N]. Returns [M, N] twice: RMS-normalised rows, and the same to be added to later."""
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return normed, normed.clone()


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, n_cols, eps, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """One program normalises one row; BLOCK_N >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale, mask=mask)


def run(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N], any strides. Returns [M, N] twice, contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        BLOCK_N = triton.next_power_of_2(n_cols)
        rms_norm_kernel[(n_rows,)](x, out, n_cols, eps, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out, out.view(n_rows, n_cols)
