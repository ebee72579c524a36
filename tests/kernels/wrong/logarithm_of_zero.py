"""Wrong: zero times its logarithm is NaN, not zero; no random number is the end of its range."""

import torch
import triton
import triton.language as tl

INPUTS = {"p": "float32[N] in 0..1"}
DIMS = {"N": [1, 100, 300]}


def reference(p: torch.Tensor) -> torch.Tensor:
    """p: [N]. Returns [N], p * log(p)."""
    return torch.special.xlogy(p, p)


@triton.jit
def entropy_kernel(p_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    """out_ptr: [n]."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + places * stride, mask=places < n, other=1.0)
    tl.store(out_ptr + places, p * tl.log(p), mask=places < n)


def run(p: torch.Tensor) -> torch.Tensor:
    out = torch.empty(p.shape, dtype=p.dtype, device=p.device)
    if p.numel():
        entropy_kernel[(triton.cdiv(p.numel(), 64),)](p, out, p.numel(), p.stride(0), BLOCK=64)
    return out
