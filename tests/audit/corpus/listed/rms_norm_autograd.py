"""RMSNorm with a learned weight, forward and backward, as a drop-in nn.Module."""

import torch
import triton
import triton.language as tl
from torch import nn

ROWS_PER_PROGRAM = 16
MAX_COLS = 16384


@triton.jit
def _rms_fwd(x_ptr, w_ptr, y_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * n_cols + cols, x * rstd * w, mask=mask)


@triton.jit
def _rms_bwd(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Each program walks over ROWS rows: dx row by row, and the share of these rows in dw (float32)."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)

    for i in tl.range(0, ROWS):
        row = first + i
        row_mask = mask & (row < n_rows)
        x = tl.load(x_ptr + row * n_cols + cols, mask=row_mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=row_mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row, mask=row < n_rows, other=0.0)
        x_hat = x * rstd
        wdy = w * dy
        c = tl.sum(x_hat * wdy, axis=0) / n_cols
        tl.store(dx_ptr + row * n_cols + cols, (wdy - x_hat * c) * rstd, mask=row_mask)
        dw += dy * x_hat

    dw += tl.load(dw_ptr + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, dw, mask=mask)


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        n_cols = x.shape[-1]
        x2 = x.reshape(-1, n_cols).contiguous()
        weight = weight.contiguous()
        n_rows = x2.shape[0]
        y = torch.empty_like(x2)
        rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(n_cols)
        num_warps = min(max(block // 256, 1), 16)
        _rms_fwd[(n_rows,)](x2, weight, y, rstd, n_cols, eps, BLOCK=block, num_warps=num_warps)
        ctx.save_for_backward(x2, weight, rstd)
        ctx.block, ctx.num_warps = block, num_warps
        return y.view(x.shape)

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        x, weight, rstd = ctx.saved_tensors
        n_rows, n_cols = x.shape
        dy = grad.reshape(n_rows, n_cols).contiguous()
        dx = torch.empty_like(x)
        dw = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
        grid = (triton.cdiv(n_rows, ROWS_PER_PROGRAM),)
        _rms_bwd[grid](
            dy,
            x,
            weight,
            rstd,
            dx,
            dw,
            n_rows,
            n_cols,
            ROWS=ROWS_PER_PROGRAM,
            BLOCK=ctx.block,
            num_warps=ctx.num_warps,
        )
        return dx.view(grad.shape), dw.to(weight.dtype), None


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        if dim > MAX_COLS:
            raise ValueError(f"RMSNorm supports at most {MAX_COLS} features")
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RMSNormFunction.apply(x, self.weight, self.eps)
