"""Wrong: steps are rounded down, where PyTorch rounds half of them up; near a step bfloat16 decides alone."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "bfloat16[1, 64] in 0..1"}
DIMS = {}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [1, 64]. Returns x in steps of 1 / 7.3, [1, 64]."""
    return torch.round(x * 7.3) / 7.3


@triton.jit
def steps_kernel(x_ptr, out_ptr, n_cols, x_stride, BLOCK_N: tl.constexpr):
    """x_ptr, out_ptr: [n_cols]."""
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + cols.to(tl.int64) * x_stride, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, tl.floor(x * 7.3) / 7.3, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [1, 64]. Returns [1, 64]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    steps_kernel[(1,)](x, out, x.shape[1], x.stride(1), BLOCK_N=64)
    return out
