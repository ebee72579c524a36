"""Wrong: the mask of the store says <=, so one element past the end of the output is written."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]", "y": "float32|bfloat16[N]"}
DIMS = {"N": [1, 100, 1000]}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns [N]: x + y, in x's dtype."""
    return x + y


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, x_stride, y_stride, BLOCK: tl.constexpr):
    """One program adds BLOCK elements. out_ptr: [n_elements], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets * x_stride, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets * y_stride, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, x + y, mask=offsets <= n_elements)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N], any stride. Returns [N], contiguous, in x's dtype."""
    n_elements = x.numel()
    out = torch.empty(n_elements, dtype=x.dtype, device=x.device)
    if n_elements == 0:
        return out
    BLOCK = 256
    grid = (triton.cdiv(n_elements, BLOCK),)
    vector_add_kernel[grid](x, y, out, n_elements, x.stride(0), y.stride(0), BLOCK=BLOCK)
    return out
