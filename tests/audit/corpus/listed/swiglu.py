"""SwiGLU, silu(gate) * up, as an autograd function and the feed-forward layer that uses it."""

import torch
import triton
import triton.language as tl
from torch import nn

BLOCK = 1024


@triton.jit
def _offsets(n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    return offs, offs < n


@triton.jit
def swiglu_fwd(gate_ptr, up_ptr, out_ptr, n, SIZE: tl.constexpr):
    offs, mask = _offsets(n, SIZE)
    g = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offs, g * tl.sigmoid(g) * u, mask=mask)


@triton.jit
def swiglu_bwd(grad_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, n, SIZE: tl.constexpr):
    offs, mask = _offsets(n, SIZE)
    dy = tl.load(grad_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    sig = tl.sigmoid(g)
    silu = g * sig
    dsilu = sig * (1.0 + g * (1.0 - sig))
    tl.store(dgate_ptr + offs, dy * u * dsilu, mask=mask)
    tl.store(dup_ptr + offs, dy * silu, mask=mask)


class SwiGLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        if gate.shape != up.shape:
            raise ValueError(f"gate is {tuple(gate.shape)}, up is {tuple(up.shape)}")
        gate, up = gate.contiguous(), up.contiguous()
        out = torch.empty_like(gate)
        n = gate.numel()
        if n:
            swiglu_fwd[(triton.cdiv(n, BLOCK),)](gate, up, out, n, SIZE=BLOCK, num_warps=4)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, grad_out: torch.Tensor):
        gate, up = ctx.saved_tensors
        d_gate = torch.empty_like(gate)
        d_up = torch.empty_like(up)
        n = gate.numel()
        if n:
            swiglu_bwd[(triton.cdiv(n, BLOCK),)](
                grad_out, gate, up, d_gate, d_up, n, SIZE=BLOCK, num_warps=4
            )
        return d_gate, d_up


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up, elementwise; differentiable in both arguments."""
    return SwiGLUFunction.apply(gate, up)


class SwiGLUFeedForward(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.gate_up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(swiglu(gate, up))
