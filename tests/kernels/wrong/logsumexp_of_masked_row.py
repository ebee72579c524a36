"""Wrong: a row of nothing but -inf gives NaN, because its maximum is subtracted from itself."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "keep": "bool[M, N]"}
DIMS = {"M": [2, 20], "N": [1, 8, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; keep: bool [M, N]. Returns float32 [M]: logsumexp of what is kept; -inf of nothing."""
    return torch.logsumexp(x.float().masked_fill(~keep, -float("inf")), dim=-1)


@triton.jit
def masked_logsumexp_kernel(
    x_ptr,
    keep_ptr,
    out_ptr,
    n_cols,
    x_row_stride,
    x_col_stride,
    keep_row_stride,
    keep_col_stride,
    BLOCK_N: tl.constexpr,
):
    """One program handles one row; BLOCK_N >= n_cols. out_ptr: float32 [n_rows], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    keep = tl.load(keep_ptr + row * keep_row_stride + cols * keep_col_stride, mask=mask, other=0)
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    x = tl.where(mask & (keep != 0), x, -float("inf"))
    is_nan = x != x
    largest = tl.max(tl.where(is_nan, -float("inf"), x), axis=0)
    shift = tl.where(largest == float("inf"), 0.0, largest)
    tl.store(out_ptr + row, shift + tl.log(tl.sum(tl.exp(x - shift), axis=0)))


def run(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; keep: bool [M, N], any strides. Returns float32 [M], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out
    strides = (*x.stride(), *keep.stride())
    BLOCK_N = triton.next_power_of_2(n_cols)
    masked_logsumexp_kernel[(n_rows,)](x, keep, out, n_cols, *strides, BLOCK_N=BLOCK_N)
    return out
