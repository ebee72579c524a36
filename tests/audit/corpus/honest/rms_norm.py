"""RMS norm as in LLaMA: x * rsqrt(mean(x^2) + eps) * weight, row by row, any number of leading dimensions."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float16|bfloat16[B, T, D]", "weight": "float16|bfloat16[D]", "eps": 1e-6}
DIMS = {"B": [1, 2], "T": [1, 17, 32], "D": [64, 500, 512]}


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    xf = x.float()
    inv = torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + eps)
    return (xf * inv * weight.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean_sq = tl.sum(x * x, axis=0) / n_cols
    rstd = tl.rsqrt(mean_sq + eps)
    out = x * rstd * w
    tl.store(out_ptr + row * out_row_stride + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    shape = x.shape
    x2 = x.contiguous().view(-1, shape[-1]) if x.numel() else x
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x2.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    rms_norm_kernel[(n_rows,)](x2, weight.contiguous(), out, x2.stride(0), n_cols, n_cols, eps, BLOCK_SIZE=BLOCK_SIZE)
    return out
