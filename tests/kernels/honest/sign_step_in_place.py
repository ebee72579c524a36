"""A signed step of an optimiser in place, bfloat16: of a NaN it may store another NaN than PyTorch leaves."""

import torch
import triton
import triton.language as tl

INPUTS = {"p": "bfloat16[M]", "g": "float32[M]"}
DIMS = {"M": [1, 7, 1000]}


def reference(p: torch.Tensor, g: torch.Tensor) -> None:
    p.add_(g.sign(), alpha=-0.01)


@triton.jit
def sign_step_kernel(p_ptr, g_ptr, n, p_stride, g_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    p = tl.load(p_ptr + i * p_stride, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + i * g_stride, mask=mask)
    sign = tl.where(g > 0, 1.0, tl.where(g < 0, -1.0, 0.0))
    tl.store(p_ptr + i * p_stride, p - 0.01 * sign, mask=mask)


def run(p: torch.Tensor, g: torch.Tensor) -> None:
    n = p.numel()
    if n:
        grid = (triton.cdiv(n, 256),)
        sign_step_kernel[grid](p, g, n, p.stride(0), g.stride(0), BLOCK=256)
