"""Sum of the rows of a matrix, out[n] = sum_m x[m, n]: the gradient of a bias.

A program sums one tile over its rows and adds the result to out in float32; the rows of a tall matrix are
spread over many programs in this way.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 100, 8192], "N": [1, 64, 1000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N] in x's dtype."""
    return x.float().sum(dim=0).to(x.dtype)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128}, num_warps=8),
    ],
    key=["n_rows", "n_cols"],
)
@triton.jit
def column_sum_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    stride_row,
    stride_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_cols], float32, contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_row + cols[None, :] * stride_col, mask=mask, other=0.0)
    partial = tl.sum(x.to(tl.float32), axis=0)
    tl.atomic_add(out_ptr + cols, partial, mask=cols < n_cols, sem="relaxed")


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N] in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=torch.float32, device=x.device)

    def grid(meta):
        return triton.cdiv(n_rows, meta["BLOCK_M"]), triton.cdiv(n_cols, meta["BLOCK_N"])

    column_sum_kernel[grid](x, out, n_rows, n_cols, x.stride(0), x.stride(1))
    return out.to(x.dtype)
