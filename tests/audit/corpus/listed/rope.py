"""Rotary position embedding in the half-split ("rotate_half") convention.

x is [B, S, H, D]; cos and sin are [S, D] tables, one row per position, as Hugging Face models build them.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, S, H, D]",
    "cos": "float32[S, D]",
    "sin": "float32[S, D]",
}
DIMS = {"B": [1, 3], "S": [1, 77, 256], "H": [4, 8, 12], "D": [64, 80, 128]}

HEADS_PER_PROGRAM = 4


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [B, S, H, D], cos, sin: [S, D]. Returns [B, S, H, D] in x's dtype."""
    half = x.shape[-1] // 2
    xf = x.float()
    rotated = torch.cat((-xf[..., half:], xf[..., :half]), dim=-1)
    return (xf * cos[None, :, None, :] + rotated * sin[None, :, None, :]).to(x.dtype)


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    seq_len,
    n_heads,
    half,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Rotates BLOCK_H heads of one token. All tensors are contiguous; BLOCK_D >= half."""
    token = tl.program_id(0)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    dims = tl.arange(0, BLOCK_D)
    dim_mask = dims < half
    mask = (heads < n_heads)[:, None] & dim_mask[None, :]
    head_dim = 2 * half

    table = (token % seq_len).to(tl.int64) * head_dim + dims
    cos_lo = tl.load(cos_ptr + table, mask=dim_mask, other=0.0)[None, :]
    cos_hi = tl.load(cos_ptr + table + half, mask=dim_mask, other=0.0)[None, :]
    sin_lo = tl.load(sin_ptr + table, mask=dim_mask, other=0.0)[None, :]
    sin_hi = tl.load(sin_ptr + table + half, mask=dim_mask, other=0.0)[None, :]

    lo = (token.to(tl.int64) * n_heads + heads[:, None]) * head_dim + dims[None, :]
    x_lo = tl.load(x_ptr + lo, mask=mask, other=0.0).to(tl.float32)
    x_hi = tl.load(x_ptr + lo + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + lo, x_lo * cos_lo - x_hi * sin_lo, mask=mask)
    tl.store(out_ptr + lo + half, x_hi * cos_hi + x_lo * sin_hi, mask=mask)


def run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [B, S, H, D], cos, sin: [S, D]. Returns [B, S, H, D], contiguous, in x's dtype."""
    batch, seq_len, n_heads, head_dim = x.shape
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    half = head_dim // 2
    grid = (batch * seq_len,)
    rope_kernel[grid](
        x,
        cos,
        sin,
        out,
        seq_len,
        n_heads,
        half,
        BLOCK_H=HEADS_PER_PROGRAM,
        BLOCK_D=triton.next_power_of_2(half),
        num_warps=2,
    )
    return out
