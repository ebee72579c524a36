"""Honest: a torch.autograd.Function with a kernel for the forward and one for the backward pass."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "grad_out": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 5, 28], "N": [1, 32, 99]}

BLOCK = 256


def reference(x: torch.Tensor, grad_out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x, grad_out: [M, N]. Returns silu(x) and the gradient with respect to x, both [M, N]."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        out = torch.nn.functional.silu(x)
        (grad_x,) = torch.autograd.grad(out, x, grad_out)
    return out.detach(), grad_x


@triton.jit
def silu_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=mask)


@triton.jit
def silu_backward_kernel(x_ptr, grad_out_ptr, grad_x_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    grad_out = tl.load(grad_out_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp(-x))
    grad_x = grad_out * sigmoid * (1.0 + x * (1.0 - sigmoid))
    tl.store(grad_x_ptr + offsets, grad_x, mask=mask)


class TritonSilu(torch.autograd.Function):
    """silu of a tensor of any shape."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        if x.numel() > 0:
            silu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
        return out

    @staticmethod
    def backward(ctx, grad_out: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        grad_x = torch.empty_like(x)
        if x.numel() > 0:
            grid = (triton.cdiv(x.numel(), BLOCK),)
            silu_backward_kernel[grid](x, grad_out, grad_x, x.numel(), BLOCK=BLOCK)
        return grad_x


def run(x: torch.Tensor, grad_out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        out = TritonSilu.apply(x)
        (grad_x,) = torch.autograd.grad(out, x, grad_out)
    return out.detach(), grad_x
