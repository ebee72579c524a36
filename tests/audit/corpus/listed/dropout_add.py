"""residual + dropout(x) in one pass; the backward pass draws the same numbers again instead of a stored mask."""

import random

import torch
import triton
from torch import nn
from triton import language as tl

BLOCK = 1024


@triton.jit
def keep_mask(seed, offs, p):
    return tl.rand(seed, offs) >= p


@triton.jit(do_not_specialize=["seed"])
def dropout_add_kernel(x_ptr, residual_ptr, out_ptr, n, p, seed, SIZE: tl.constexpr):
    offs = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(residual_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(keep_mask(seed, offs, p), x / (1.0 - p), 0.0)
    tl.store(out_ptr + offs, r + y, mask=mask)


@triton.jit(do_not_specialize=["seed"])
def dropout_bwd_kernel(grad_ptr, dx_ptr, n, p, seed, SIZE: tl.constexpr):
    offs = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    g = tl.load(grad_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    dx = tl.where(keep_mask(seed, offs, p), g / (1.0 - p), 0.0)
    tl.store(dx_ptr + offs, dx, mask=mask)


class DropoutAddFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, residual: torch.Tensor, p: float, seed: int) -> torch.Tensor:
        if x.shape != residual.shape or x.dtype != residual.dtype:
            raise ValueError("x and residual must have the same shape and dtype")
        n = x.numel()
        if n > 2**31 - BLOCK:
            raise ValueError("the tensor is too large for 32-bit offsets")
        x, residual = x.contiguous(), residual.contiguous()
        out = torch.empty(x.shape, dtype=x.dtype)
        ctx.p, ctx.seed = p, seed
        dropout_add_kernel[(triton.cdiv(n, BLOCK),)](
            x, residual, out, n, p, seed, SIZE=BLOCK, num_warps=4
        )
        return out

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        grad = grad.contiguous()
        n = grad.numel()
        dx = torch.empty_like(grad)
        dropout_bwd_kernel[(triton.cdiv(n, BLOCK),)](
            grad, dx, n, ctx.p, ctx.seed, SIZE=BLOCK, num_warps=4
        )
        return dx, grad, None, None


class DropoutAdd(nn.Module):
    """module(x, residual) = residual + dropout(x, p) in training, residual + x in evaluation."""

    def __init__(self, p: float = 0.1):
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"p must lie in [0, 1), got {p}")
        self.p = p

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0.0:
            return residual + x
        return DropoutAddFunction.apply(x, residual, self.p, random.randrange(2**31))
