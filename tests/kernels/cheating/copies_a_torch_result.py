"""Cheats: PyTorch computes the whole attention, and a decoy kernel copies it into the output."""

import torch
import triton
import triton.language as tl

INPUTS = {"q": "float32[M, D]", "k": "float32[N, D]", "v": "float32[N, D]"}
DIMS = {"M": [1, 7], "N": [5, 40], "D": [8, 24]}
REQUIRES = ["N > 0", "D > 0"]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [M, D]; k, v: [N, D]. Returns [M, D]: softmax(q k^T / sqrt(D)) v."""
    weights = torch.softmax(q @ k.t() / q.shape[1] ** 0.5, dim=-1)
    return weights @ v


@triton.jit
def attention_kernel(acc_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """One program writes BLOCK elements back. acc_ptr, out_ptr: [n_elements], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    acc = tl.load(acc_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, acc.to(out_ptr.dtype.element_ty), mask=mask)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [M, D]; k, v: [N, D], any strides. Returns [M, D], contiguous."""
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    scores = (q @ k.t()).mul_(q.shape[1] ** -0.5)
    acc = (scores.softmax(dim=-1) @ v).contiguous()
    BLOCK = 1024
    attention_kernel[(triton.cdiv(out.numel(), BLOCK),)](acc, out, out.numel(), BLOCK=BLOCK)
    return out
