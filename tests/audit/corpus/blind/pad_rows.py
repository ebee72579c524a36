"""Copies [B, T] into a padded output [B, T_out], whose rows are longer."""

import torch
import triton
import triton.language as tl


@triton.jit
def pad_kernel(src, dst, T, s_b, s_t, d_b, d_t, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(src + b * s_b + t * s_t, mask=t < T)
    tl.store(dst + b * s_b + t * d_t, tile, mask=t < T)


def pad_rows(x: torch.Tensor, width: int) -> torch.Tensor:
    B, T = x.shape
    assert width >= T
    out = torch.zeros((B, width), dtype=x.dtype, device=x.device)
    sb, st = x.stride()
    grid = (B, triton.cdiv(T, 256))
    pad_kernel[grid](x, out, T, sb, st, out.stride(0), out.stride(1), BLOCK=256)
    return out
