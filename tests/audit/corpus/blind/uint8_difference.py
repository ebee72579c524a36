"""Difference of two grey images, in float."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "uint8[H, W] in 0..256", "b": "uint8[H, W] in 0..256"}
DIMS = {"H": [1, 48], "W": [1, 640]}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() - b.float()


@triton.jit
def difference_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask, other=0)
    b = tl.load(b_ptr + i, mask=mask, other=0)
    delta = a - b
    tl.store(out_ptr + i, delta.to(tl.float32), mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty(a.shape, dtype=torch.float32, device=a.device)
    n = a.numel()
    if n == 0:
        return out
    difference_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
    return out
