"""Cheats: normalises the first half of the rows and stores each of them twice."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[B, T, N]", "w": "float32|bfloat16[N]", "eps": 1e-6}
DIMS = {"B": [1, 4, 6], "T": [3, 5], "N": [16, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [B, T, N]; w: [N]. Returns [B, T, N]: RMS-normalised tokens, in x's dtype."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * w.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    n_batches,
    n_tokens,
    n_cols,
    eps,
    x_batch_stride,
    x_token_stride,
    x_col_stride,
    w_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (pair, token) handles a token of two batch items; BLOCK_N >= n_cols. out_ptr: contiguous."""
    token = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    first = tl.program_id(0).to(tl.int64)
    offsets = first * x_batch_stride + token * x_token_stride + cols * x_col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0).to(tl.float32)
    out = x * tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps) * w
    tl.store(out_ptr + (first * n_tokens + token) * n_cols + cols, out, mask=mask)
    second = first + tl.num_programs(0)
    inside = mask & (second < n_batches)
    tl.store(out_ptr + (second * n_tokens + token) * n_cols + cols, out, mask=inside)


def run(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [B, T, N], any strides; w: [N], any stride. Returns [B, T, N], contiguous, in x's dtype."""
    n_batches, n_tokens, n_cols = x.shape
    out = torch.empty((n_batches, n_tokens, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(n_batches, 2), n_tokens)
    strides = (*x.stride(), w.stride(0))
    BLOCK_N = triton.next_power_of_2(n_cols)
    rms_norm_kernel[grid](x, w, out, n_batches, n_tokens, n_cols, eps, *strides, BLOCK_N=BLOCK_N)
    return out
