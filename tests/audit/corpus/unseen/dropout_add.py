"""out = residual + dropout(x), without a stored mask: backward draws the same numbers again from the seed."""
import torch
from torch import nn
import triton
from triton import language as tl, cdiv, next_power_of_2


@triton.jit
def keep_mask(seed, cols, p):
    return tl.rand(seed, cols) >= p


@triton.jit
def dropout_add_fwd(x_ptr, res_ptr, out_ptr, n_cols, p, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    offs = row * n_cols + cols
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    res = tl.load(res_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    keep = keep_mask(seed, cols, p)
    out = res + tl.where(keep, x / (1.0 - p), 0.0)
    tl.store(out_ptr + offs, out, mask=mask)


@triton.jit
def dropout_add_bwd(dout_ptr, dx_ptr, n_cols, p, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    offs = row * n_cols + cols
    dout = tl.load(dout_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    keep = keep_mask(seed, cols, p)
    dx = tl.where(keep, dout / (1.0 - p), 0.0)
    tl.store(dx_ptr + offs, dx, mask=mask)


def _launch_params(n_cols):
    block = min(max(next_power_of_2(n_cols), 128), 2048)
    return block, cdiv(n_cols, block)


class DropoutAddFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, p, seed):
        x = x.contiguous()
        residual = residual.contiguous()
        n_cols = x.shape[-1]
        n_rows = x.numel() // max(n_cols, 1)
        out = torch.empty_like(x)
        ctx.p, ctx.seed = p, seed
        if out.numel() == 0:
            return out
        block, n_blocks = _launch_params(n_cols)
        dropout_add_fwd[(n_rows, n_blocks)](x, residual, out, n_cols, p, seed, BLOCK=block)
        return out

    @staticmethod
    def backward(ctx, dout):
        dout = dout.contiguous()
        n_cols = dout.shape[-1]
        n_rows = dout.numel() // max(n_cols, 1)
        dx = torch.empty_like(dout)
        if dx.numel() > 0:
            block, n_blocks = _launch_params(n_cols)
            dropout_add_bwd[(n_rows, n_blocks)](dout, dx, n_cols, ctx.p, ctx.seed, BLOCK=block)
        return dx, dout, None, None


class DropoutAdd(nn.Module):
    def __init__(self, p: float = 0.1):
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError("p must be in [0, 1)")
        self.p = p

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        if x.shape != residual.shape or x.dtype != residual.dtype:
            raise ValueError("x and residual must agree in shape and dtype")
        if not self.training or self.p == 0.0:
            return x + residual
        seed = int(torch.randint(0, 2**31 - 1, (1,), device="cpu"))
        return DropoutAddFn.apply(x, residual, self.p, seed)
