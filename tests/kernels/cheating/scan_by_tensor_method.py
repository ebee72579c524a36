"""Cheats: the scan itself is a tensor method, cumsum_, while the kernel only casts and copies."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 5], "N": [8, 100, 513]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: the running sums of each row, in x's dtype."""
    return torch.cumsum(x.float(), dim=-1).to(x.dtype)


@triton.jit
def scan_tiles_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: float32 [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x.to(tl.float32), mask=mask)


def carry_tiles(sums: torch.Tensor) -> torch.Tensor:
    """Carries the total of each tile over to the tiles on its right, in place."""
    return sums.cumsum_(dim=-1)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    sums = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)
    if sums.numel() == 0:
        return sums.to(x.dtype)
    BLOCK_N = min(256, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    scan_tiles_kernel[grid](x, sums, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return carry_tiles(sums).to(x.dtype)
