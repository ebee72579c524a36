"""Wrong: the reference clamps float16 alone, the kernel nothing: large float16 values are wrong."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|float16[N]"}
DIMS = {"N": [8, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]: 100 * x, in float16 between -100 and 100."""
    h = 100 * x
    if h.dtype == torch.float16:
        h = h.clamp(-100, 100)
    return h


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, x_stride, BLOCK: tl.constexpr):
    """out_ptr: [n], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 100 * x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N], any stride. Returns [N] in x's dtype."""
    n = x.numel()
    out = torch.empty((n,), dtype=x.dtype, device=x.device)
    if n > 0:
        scale_kernel[(triton.cdiv(n, 16),)](x, out, n, x.stride(0), BLOCK=16)
    return out
