"""Euclidean norm of each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, norm_ptr, stride, width, BLOCK: tl.constexpr = 2048):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < width, other=0.0).to(tl.float32)
    tl.store(norm_ptr + row, tl.sqrt(tl.sum(x * x, axis=0)))


def row_norms(x: torch.Tensor) -> torch.Tensor:
    assert x.ndim == 2 and x.stride(1) == 1
    norms = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.shape[0] == 0:
        return norms
    norm_kernel[(x.shape[0],)](x, norms, x.stride(0), x.shape[1])
    return norms
