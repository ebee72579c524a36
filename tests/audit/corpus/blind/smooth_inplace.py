"""Three-point moving average of a vector, in place; the ends count as zero outside."""

import torch
import triton
import triton.language as tl


@triton.jit
def smooth_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    i = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = i < n
    left = tl.load(x_ptr + i - 1, mask=mask & (i > 0), other=0.0)
    mid = tl.load(x_ptr + i, mask=mask, other=0.0)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x_ptr + i, (left + mid + right) / 3.0, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    y = x.clone(memory_format=torch.contiguous_format)
    n = y.numel()
    if n == 0:
        return y
    smooth_kernel[(triton.cdiv(n, 512),)](y, n, BLOCK_SIZE=512)
    return y
