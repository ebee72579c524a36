"""Hard swish of a tensor of any shape."""

import torch
import triton
import triton.language as tl


@triton.jit
def _hard_swish(inp, out, total, BLOCK: tl.constexpr):
    start = tl.program_id(axis=0) * BLOCK
    idx = start + tl.arange(0, BLOCK)
    inside = idx < total
    v = tl.load(inp + idx, mask=inside)
    gate = tl.minimum(tl.maximum(v + 3.0, 0.0), 6.0) / 6.0
    tl.store(out + idx, v * gate, mask=inside)


def hard_swish(t: torch.Tensor) -> torch.Tensor:
    t = t.contiguous()
    res = torch.empty_like(t)
    total = t.numel()
    if total == 0:
        return res
    block = 512
    n_programs = total // block or 1
    _hard_swish[(n_programs,)](t, res, total, BLOCK=block)
    return res
