"""One explicit step of the heat equation along rows of a grid."""

import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(u_ptr, H, W, pitch, k, BH: tl.constexpr, BW: tl.constexpr):
    y = tl.program_id(0) * BH + tl.arange(0, BH)
    x = tl.program_id(1) * BW + tl.arange(0, BW)
    inside = (y[:, None] > 0) & (y[:, None] < H - 1) & (x[None, :] < W)
    here = u_ptr + y[:, None].to(tl.int64) * pitch + x[None, :]
    u = tl.load(here, mask=inside, other=0.0)
    above = tl.load(here - pitch, mask=inside, other=0.0)
    below = tl.load(here + pitch, mask=inside, other=0.0)
    tl.store(here, u + k * (above - 2.0 * u + below), mask=inside)


def step(u: torch.Tensor, k: float) -> torch.Tensor:
    v = u.clone(memory_format=torch.contiguous_format)
    H, W = v.shape
    if v.numel() == 0:
        return v
    grid = (triton.cdiv(H, 16), triton.cdiv(W, 64))
    step_kernel[grid](v, H, W, v.stride(0), k, BH=16, BW=64)
    return v
