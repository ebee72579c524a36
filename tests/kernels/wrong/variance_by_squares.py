"""Wrong: the variance is E[x^2] - E[x]^2 in float32, which cancels when the mean is large."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 7, 40], "N": [1, 9, 128, 700]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the biased variance of each row, [M]."""
    return torch.var(x, dim=-1, correction=0)


@triton.jit
def row_variance_kernel(x_ptr, out_ptr, n_cols, stride_m, stride_n, BLOCK_N: tl.constexpr):
    """One program per row, BLOCK_N columns at a time, in a single pass."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    total = tl.zeros((BLOCK_N,), tl.float32)
    total_of_squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=0.0)
        total += x
        total_of_squares += x * x
    mean = tl.sum(total, axis=0) / n_cols
    mean_of_squares = tl.sum(total_of_squares, axis=0) / n_cols
    tl.store(out_ptr + row, mean_of_squares - mean * mean)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out
    row_variance_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=256)
    return out
