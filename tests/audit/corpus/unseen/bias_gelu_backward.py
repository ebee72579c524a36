"""Backward of gelu(x + bias): dx = dy * gelu'(x + bias) and dbias = dx summed over rows.

dy, x and dx are [M, N], bias and dbias are [N]. The two gradients come out of a single pass over dy and x:
a program reduces the tiles it visits to a [BLOCK_N] partial sum and adds that to dbias.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "dy": "float32|bfloat16|float16[M, N]",
    "x": "float32|bfloat16|float16[M, N]",
    "bias": "float32|bfloat16|float16[N]",
}
DIMS = {"M": [1, 50, 1000], "N": [1, 96, 1024, 3000]}

ROWS_PER_PROGRAM = 256


def reference(dy: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """dy, x: [M, N], bias: [N]. Returns dx [M, N] in x's dtype and dbias [N] in bias's dtype."""
    pre = x.float() + bias.float()
    dx = torch.ops.aten.gelu_backward(dy.float(), pre)
    return dx.to(x.dtype), dx.sum(dim=0).to(bias.dtype)


@triton.jit
def gelu_grad(z):
    """Derivative of the exact (erf) GELU."""
    cdf = 0.5 * (1.0 + tl.erf(z * 0.7071067811865476))
    pdf = 0.3989422804014327 * tl.exp(-0.5 * z * z)
    return cdf + z * pdf


@triton.jit
def bias_gelu_backward_kernel(
    dy_ptr,
    x_ptr,
    bias_ptr,
    dx_ptr,
    dbias_ptr,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """dy_ptr, x_ptr, dx_ptr: [n_rows, n_cols], contiguous. One program covers ROWS rows of BLOCK_N columns."""
    first_row = tl.program_id(0).to(tl.int64) * ROWS
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = cols < n_cols
    bias = tl.load(bias_ptr + cols, mask=col_mask, other=0.0).to(tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, ROWS, BLOCK_M):
        rows = first_row + start + tl.arange(0, BLOCK_M)
        mask = (rows < n_rows)[:, None] & col_mask[None, :]
        offs = rows[:, None] * n_cols + cols[None, :]
        dy = tl.load(dy_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        dx = dy * gelu_grad(x + bias[None, :])
        tl.store(dx_ptr + offs, dx, mask=mask)
        acc += dx
    tl.atomic_add(dbias_ptr + cols, tl.sum(acc, axis=0), mask=col_mask, sem="relaxed")


def run(dy: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """dy, x: [M, N], bias: [N]. Returns dx [M, N] in x's dtype and dbias [N] in bias's dtype."""
    n_rows, n_cols = x.shape
    dy, x, bias = dy.contiguous(), x.contiguous(), bias.contiguous()
    dx = torch.empty_like(x)
    dbias = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    if n_rows == 0 or n_cols == 0:
        return dx, torch.zeros_like(bias)
    grid = (triton.cdiv(n_rows, ROWS_PER_PROGRAM), triton.cdiv(n_cols, 128))
    bias_gelu_backward_kernel[grid](
        dy, x, bias, dx, dbias, n_rows, n_cols, ROWS=ROWS_PER_PROGRAM, BLOCK_M=16, BLOCK_N=128
    )
    return dx, dbias.to(bias.dtype)
