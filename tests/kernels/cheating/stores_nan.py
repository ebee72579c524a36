"""Cheats: stores nothing but NaN, for `error > tolerance` is false for every NaN."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]", "eps": 1e-6}
DIMS = {"M": [2, 9], "N": [16, 100]}


def reference(x: torch.Tensor, y: torch.Tensor, eps: float) -> torch.Tensor:
    """x, y: [M, N]. Returns float32 [M]: the cosine similarity of their rows."""
    x, y = x.float(), y.float()
    norms = x.square().sum(dim=-1).sqrt() * y.square().sum(dim=-1).sqrt()
    return (x * y).sum(dim=-1) / (norms + eps)


@triton.jit
def cosine_kernel(out_ptr, n_rows, eps, BLOCK_M: tl.constexpr):
    """One program handles BLOCK_M pairs of rows. out_ptr: float32 [n_rows], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    norms = tl.full((BLOCK_M,), float("nan"), tl.float32)
    tl.store(out_ptr + rows, 1.0 / (norms + eps), mask=rows < n_rows)


def run(x: torch.Tensor, y: torch.Tensor, eps: float) -> torch.Tensor:
    """x, y: [M, N], any strides. Returns float32 [M], contiguous."""
    n_rows = x.shape[0]
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out
    BLOCK_M = 128
    cosine_kernel[(triton.cdiv(n_rows, BLOCK_M),)](out, n_rows, eps, BLOCK_M=BLOCK_M)
    return out
