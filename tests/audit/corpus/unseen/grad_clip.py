"""Gradient clipping by global norm with Triton. Called from the training loop before every optimiser step."""
from typing import Iterable

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 1024
MAX_PROGRAMS = 1024


@triton.jit
def _sum_of_squares(grad_ptr, total_ptr, n_elements, BLOCK: tl.constexpr):
    """Adds the sum of squares of grad to total_ptr[0]. Each program strides over the whole tensor."""
    pid = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(pid * BLOCK, n_elements, step):
        offs = start + tl.arange(0, BLOCK)
        g = tl.load(grad_ptr + offs, mask=offs < n_elements, other=0.0).to(tl.float32)
        acc += g * g
    tl.atomic_add(total_ptr, tl.sum(acc, axis=0), sem="relaxed")


@triton.jit
def _scale_(grad_ptr, coef, n_elements, BLOCK: tl.constexpr):
    """Multiplies grad by coef, in place."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    g = tl.load(grad_ptr + offs, mask=mask).to(tl.float32)
    tl.store(grad_ptr + offs, g * coef, mask=mask)


@torch.no_grad()
def clip_grad_norm_(parameters: Iterable[torch.nn.Parameter], max_norm: float, eps: float = 1e-6) -> torch.Tensor:
    """Scales the gradients so that their global 2-norm is at most max_norm.

    All gradients live on one device and are contiguous. Returns the norm before clipping, as a tensor.
    """
    grads = [p.grad for p in parameters if p.grad is not None and p.grad.numel() > 0]
    if not grads:
        return torch.tensor(0.0)
    device = grads[0].device
    for g in grads:
        if g.device != device:
            raise ValueError("all gradients must live on one device")
        if not g.is_contiguous():
            raise ValueError("gradients must be contiguous")

    total = torch.zeros(1, dtype=torch.float32, device=device)
    for g in grads:
        n = g.numel()
        grid = (min(triton.cdiv(n, BLOCK_SIZE), MAX_PROGRAMS),)
        _sum_of_squares[grid](g, total, n, BLOCK=BLOCK_SIZE)

    norm = total.sqrt().squeeze(0)
    coef = max_norm / (norm.item() + eps)
    if coef < 1.0:
        for g in grads:
            n = g.numel()
            _scale_[(triton.cdiv(n, BLOCK_SIZE),)](g, coef, n, BLOCK=BLOCK_SIZE)
    return norm
