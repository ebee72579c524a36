"""Wrong: one program does it all, and only the block of the first of two configurations is long enough."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]", "shift": "float32[N]"}
DIMS = {"N": [1, 300, 900]}
REQUIRES = ["N <= 1024"]


def reference(x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """x, shift: [N]. Returns float32 [N]."""
    return x.float() * 0.5 + shift


@triton.autotune([triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def half_and_shift_kernel(x_ptr, shift_ptr, out_ptr, n, x_stride, shift_stride, BLOCK: tl.constexpr):
    """x_ptr, shift_ptr: [n]; out_ptr: float32 [n], contiguous."""
    index = tl.arange(0, BLOCK).to(tl.int64)
    mask = index < n
    x = tl.load(x_ptr + index * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + index, x * 0.5 + tl.load(shift_ptr + index * shift_stride, mask=mask), mask=mask)


def run(x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    if x.numel() > 0:
        half_and_shift_kernel[(1,)](x, shift, out, x.shape[0], x.stride(0), shift.stride(0))
    return out
