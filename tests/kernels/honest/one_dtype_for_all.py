"""Honest: declares two dtypes for both of its inputs, and raises where they are mixed."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]", "y": "float32|bfloat16[N]"}
DIMS = {"N": [1, 100, 300]}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns [N]."""
    return x * y


@triton.jit
def multiply_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One program multiplies BLOCK elements."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    product = tl.load(x_ptr + offsets, mask=mask) * tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, product, mask=mask)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N], of one dtype. Returns [N]."""
    if x.dtype != y.dtype:
        raise TypeError(f"x and y must share a dtype, not {x.dtype} and {y.dtype}")
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        multiply_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out
