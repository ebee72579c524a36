"""Wrong: among equal minima the last index is returned, where PyTorch gives the first."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 6, 31], "N": [1, 8, 50, 300]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns int64 [M], the index of the first minimum of each row; NaN counts as smallest."""
    return torch.argmin(x, dim=-1)


@triton.jit
def argmin_kernel(x_ptr, out_ptr, n_cols, stride_m, stride_n, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=mask, other=float("inf")).to(tl.float32)
    is_nan = x != x
    row_has_nan = tl.max(is_nan.to(tl.int32), axis=0) == 1
    smallest = tl.min(tl.where(is_nan, float("inf"), x), axis=0)
    is_smallest = tl.where(row_has_nan, is_nan, x == smallest)
    index = tl.max(tl.where(is_smallest & mask, cols, -1), axis=0)
    tl.store(out_ptr + row, index)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.int64, device=x.device)
    if n_rows == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    argmin_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out
