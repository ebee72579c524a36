"""Wrong: y is rounded to x's dtype before the sum, which shows where x is bfloat16 and y is float32."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]", "y": "float32|bfloat16[N]"}
DIMS = {"N": [1, 100, 300]}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns [N]."""
    return x + y


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One program adds BLOCK elements."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask).to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns [N]."""
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    if x.numel() > 0:
        add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out
