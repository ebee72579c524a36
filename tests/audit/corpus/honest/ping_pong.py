"""Two steps of a three-point average, from one buffer to another and back."""

import torch
import triton
import triton.language as tl


@triton.jit
def average_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    left = tl.load(x_ptr + i - 1, mask=inside & (i > 0), other=0.0)
    mid = tl.load(x_ptr + i, mask=inside, other=0.0)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(y_ptr + i, (left + mid + right) / 3.0, mask=inside)


def average_twice(x: torch.Tensor) -> torch.Tensor:
    first = x.clone(memory_format=torch.contiguous_format)
    second = torch.empty_like(first)
    n = first.numel()
    if n == 0:
        return first
    grid = (triton.cdiv(n, 512),)
    average_kernel[grid](first, second, n, BLOCK=512)
    average_kernel[grid](second, first, n, BLOCK=512)
    return first
