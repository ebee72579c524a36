"""Moves every element one place to the left; the last one becomes zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def shift_kernel(src_ptr, dst_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ahead = at + 1
    value = tl.load(src_ptr + ahead, mask=ahead < n, other=0.0)
    tl.store(dst_ptr + at, value, mask=at < n)


def shift_left(x: torch.Tensor) -> torch.Tensor:
    """A copy of x, shifted."""
    shifted = x.clone()
    n = shifted.numel()
    if n == 0:
        return shifted
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    shift_kernel[grid](shifted, shifted, n, BLOCK=1024)
    return shifted
