"""Wrong: squares are added up by atomics in torch.empty, onto whatever its memory held."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 40, 150], "N": [1, 64, 150]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns float32 [N]: the sum of each column's squares."""
    return x.float().square().sum(dim=0)


@triton.jit
def column_energy_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Program (i, j) adds BLOCK_M rows of BLOCK_N columns into out_ptr: float32 [n_cols], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    offsets = rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + cols, tl.sum(x * x, axis=0), mask=cols < n_cols, sem="relaxed")


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns float32 [N], contiguous."""
    n_rows, n_cols = x.shape
    if x.numel() == 0:
        return torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    out = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    BLOCK_M, BLOCK_N = 16, 64
    grid = (triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N))
    strides = (x.stride(0), x.stride(1))
    column_energy_kernel[grid](x, out, n_rows, n_cols, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
