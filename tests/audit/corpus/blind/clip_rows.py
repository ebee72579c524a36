"""Clips each row of a wide matrix, a few columns for each program."""

import torch
import triton
import triton.language as tl


@triton.jit
def clip_kernel(x_ptr, y_ptr, limit, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + col, mask=col < N)
    x = tl.minimum(tl.maximum(x, -limit), limit)
    tl.store(y_ptr + row * stride + col, x, mask=col < N)


def clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    x = x.contiguous()
    M, N = x.shape
    y = torch.empty_like(x)
    if y.numel() == 0:
        return y
    clip_kernel[(M, triton.cdiv(N, 1024))](x, y, limit, N, x.stride(0), BLOCK=1024)
    return y
