"""Wrong: the grid is rounded down, so the last partial block is never written when there are others."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[N]"}
DIMS = {"N": [1, 7, 512, 1024, 1500]}

BLOCK = 512


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns the quick GELU x * sigmoid(1.702 x), [N], in x's dtype."""
    wide = x.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(x.dtype)


@triton.jit
def quick_gelu_kernel(x_ptr, out_ptr, n_elements, x_stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets * x_stride, mask=mask, other=0.0).to(tl.float32)
    out = x / (1.0 + tl.exp(-1.702 * x))
    tl.store(out_ptr + offsets, out, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_elements = x.numel()
    out = torch.empty(n_elements, dtype=x.dtype, device=x.device)
    if n_elements == 0:
        return out
    grid = (max(1, n_elements // BLOCK),)
    quick_gelu_kernel[grid](x, out, n_elements, x.stride(0), BLOCK=BLOCK)
    return out
