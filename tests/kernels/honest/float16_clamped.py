"""Honest: clamps in float16 alone and takes its eps by dtype, as the reference does."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|float16|bfloat16[N]"}
DIMS = {"N": [8, 100]}

EPS = {torch.float32: 1e-6, torch.float16: 1e-2, torch.bfloat16: 1e-1}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]: h / (|h| + eps) for h = 3 * x, in float16 between -2 and 2."""
    h = 3 * x
    if h.dtype == torch.float16:
        h = h.clamp(-2, 2)
    return h / (h.abs() + EPS[x.dtype])


@triton.jit
def kernel(x_ptr, out_ptr, n, x_stride, eps, CLAMP: tl.constexpr, BLOCK: tl.constexpr):
    """out_ptr: [n], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    h = 3 * tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32)
    if CLAMP:
        h = tl.clamp(h, -2.0, 2.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + offsets, h / (tl.abs(h) + eps), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N], any stride. Returns [N] in x's dtype."""
    n = x.numel()
    out = torch.empty((n,), dtype=x.dtype, device=x.device)
    if n > 0:
        clamp = x.dtype == torch.float16
        kernel[(triton.cdiv(n, 16),)](x, out, n, x.stride(0), EPS[x.dtype], CLAMP=clamp, BLOCK=16)
    return out
