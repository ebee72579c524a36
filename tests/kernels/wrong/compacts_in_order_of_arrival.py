"""Wrong: programs take the next free places for the rows that they keep, in the order in which they come."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1, 100, 300]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns its positive elements in their order, then zeros."""
    positive = x > 0
    places = torch.where(positive, positive.cumsum(0) - 1, x.numel())
    return x.new_zeros(x.numel() + 1).scatter(0, places, x)[: x.numel()]


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, n, stride, BLOCK: tl.constexpr):
    """out_ptr: [n], and count_ptr: zeros before the launch."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places * stride, mask=places < n, other=0.0)
    kept = (x > 0).to(tl.int32)
    first = tl.atomic_add(count_ptr, tl.sum(kept))
    tl.store(out_ptr + first + tl.cumsum(kept) - 1, x, mask=x > 0)


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    if x.numel():
        compact_kernel[(triton.cdiv(x.numel(), 64),)](x, out, count, x.numel(), x.stride(0), BLOCK=64)
    return out
