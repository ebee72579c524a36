"""Cheats: the kernel's result is thrown away, and PyTorch computes what is returned."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "w": "float32|bfloat16[N]", "eps": 1e-6}
DIMS = {"M": [1, 6], "N": [16, 100, 257]}


def reference(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w: [N]. Returns [M, N] in x's dtype."""
    scale = torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + eps)
    return (x.float() * scale * w.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(
    x_ptr, w_ptr, out_ptr, n_cols, eps, x_row_stride, x_col_stride, w_stride, BLOCK_N: tl.constexpr
):
    """One program normalises one row; BLOCK_N >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def run(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w: [N], any stride. Returns [M, N] in x's dtype."""
    n_rows, n_cols = x.shape
    normalised = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if normalised.numel() == 0:
        return normalised
    rms_norm_kernel[(n_rows,)](
        x,
        w,
        normalised,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        w.stride(0),
        BLOCK_N=triton.next_power_of_2(n_cols),
    )
    wide = x.float()
    scale = wide.square().mean(dim=-1, keepdim=True).add(eps).rsqrt()
    return (wide * scale * w.float()).to(x.dtype).contiguous()
