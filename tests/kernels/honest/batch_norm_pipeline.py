"""Honest: three kernels pass temporaries on; launch sizes, and nothing else, are cached by functools."""

import functools

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "eps": 1e-5}
DIMS = {"M": [1, 30, 200], "N": [1, 64, 100]}


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: each column normalised over the batch, in x's dtype."""
    centred = x.float() - x.float().mean(dim=0)
    variance = centred.square().mean(dim=0)
    return (centred * torch.rsqrt(variance + eps)).to(x.dtype)


@triton.jit
def column_mean_kernel(
    x_ptr, mean_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program averages BLOCK_N columns. mean_ptr: float32 [n_cols], contiguous."""
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        offsets = rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(mean_ptr + cols, tl.sum(total, axis=0) / n_rows, mask=cols < n_cols)


@triton.jit
def centre_kernel(
    x_ptr, mean_ptr, centred_ptr, squares_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr
):
    """Program (row, tile) centres BLOCK_N columns. centred_ptr, squares_ptr: float32 [n_rows, n_cols]."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    centred = x - tl.load(mean_ptr + cols, mask=mask, other=0.0)
    tl.store(centred_ptr + row * n_cols + cols, centred, mask=mask)
    tl.store(squares_ptr + row * n_cols + cols, centred * centred, mask=mask)


@triton.jit
def scale_kernel(centred_ptr, variance_ptr, out_ptr, n_cols, eps, BLOCK_N: tl.constexpr):
    """Program (row, tile) scales BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    centred = tl.load(centred_ptr + row * n_cols + cols, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.load(variance_ptr + cols, mask=mask, other=1.0) + eps)
    tl.store(out_ptr + row * n_cols + cols, centred * scale, mask=mask)


@functools.lru_cache(maxsize=256)
def launch_sizes(n_rows: int, n_cols: int) -> tuple[int, int, int]:
    """BLOCK_M and BLOCK_N of a column mean, and BLOCK_N of element-wise work."""
    block_n = min(64, triton.next_power_of_2(n_cols))
    return min(32, triton.next_power_of_2(n_rows)), block_n, min(1024, triton.next_power_of_2(n_cols))


def column_mean(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides, not empty. Returns float32 [N]."""
    n_rows, n_cols = x.shape
    mean = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    BLOCK_M, BLOCK_N, _ = launch_sizes(n_rows, n_cols)
    grid = (triton.cdiv(n_cols, BLOCK_N),)
    column_mean_kernel[grid](x, mean, n_rows, n_cols, *x.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return mean


def run(x: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    _, _, BLOCK_N = launch_sizes(n_rows, n_cols)
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    centred, squares = torch.empty((2, n_rows, n_cols), dtype=torch.float32, device=x.device)
    centre_kernel[grid](x, column_mean(x), centred, squares, n_cols, *x.stride(), BLOCK_N=BLOCK_N)
    scale_kernel[grid](centred, column_mean(squares), out, n_cols, eps, BLOCK_N=BLOCK_N)
    return out
