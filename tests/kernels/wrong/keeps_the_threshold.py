"""Wrong: what is as large as the threshold is kept as what is larger; no random number shows it."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]", "threshold": 0.7}
DIMS = {"N": [1, 100, 300]}


def reference(x: torch.Tensor, threshold: float) -> torch.Tensor:
    """x: [N]. Returns [N], zero where x is not above the threshold in size."""
    return torch.nn.functional.hardshrink(x, threshold)


@triton.jit
def shrink_kernel(x_ptr, out_ptr, n, stride, threshold, BLOCK: tl.constexpr):
    """out_ptr: [n]."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places * stride, mask=places < n)
    tl.store(out_ptr + places, tl.where(tl.abs(x) < threshold, 0.0, x), mask=places < n)


def run(x: torch.Tensor, threshold: float) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        shrink_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), x.stride(0), threshold, BLOCK=64)
    return out
