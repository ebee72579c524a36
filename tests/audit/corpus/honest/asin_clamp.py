"""asin of values clamped into [-1, 1], by libdevice."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INPUTS = {"x": "float32[N] in -2..2"}
DIMS = {"N": [1, 1000, 98432]}


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.asin(torch.clamp(x, -1.0, 1.0))


@triton.jit
def asin_kernel(x_ptr, y_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x = tl.clamp(x, -1.0, 1.0)
    x = libdevice.asin(x)
    tl.store(y_ptr + offsets, x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements == 0:
        return output
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    asin_kernel[grid](x, output, n_elements, BLOCK_SIZE=1024)
    return output
