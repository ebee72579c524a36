"""A copy, as fast as memory allows: out[n] = x[n]."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]."""
    return x.clone()


@triton.jit
def copy_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """One program copies BLOCK elements."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N], contiguous. Returns [N]."""
    out = torch.empty_like(x)
    BLOCK = 1024
    copy_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK, num_warps=8)
    return out
