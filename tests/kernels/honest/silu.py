"""Honest: silu, as it should be."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]"}
DIMS = {"N": [8, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns x * sigmoid(x), [N]."""
    return torch.nn.functional.silu(x)


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, x_stride, BLOCK: tl.constexpr):
    """x_ptr, out_ptr: [n]."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x / (1 + tl.exp(-x)), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]."""
    out = torch.zeros_like(x)
    n = x.numel()
    if triton.cdiv(n, 16) > 0:
        silu_kernel[(triton.cdiv(n, 16),)](x, out, n, x.stride(0), BLOCK=16)
    return out
