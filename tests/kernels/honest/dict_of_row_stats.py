"""Honest: returns a dict of several outputs, of float and integer dtypes."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "threshold": 0.5}
DIMS = {"M": [1, 6, 30], "N": [1, 9, 64, 200]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, threshold: float) -> dict[str, torch.Tensor]:
    """x: [M, N]. Returns the rows' mean, max (float32 [M]), argmax (int64 [M]), n_above (int32 [M])."""
    return {
        "mean": x.mean(dim=-1),
        "max": x.amax(dim=-1),
        "argmax": x.argmax(dim=-1),
        "n_above": (x > threshold).sum(dim=-1, dtype=torch.int32),
    }


@triton.jit
def row_stats_kernel(
    x_ptr,
    mean_ptr,
    max_ptr,
    argmax_ptr,
    n_above_ptr,
    n_cols,
    threshold,
    stride_m,
    stride_n,
    BLOCK_N: tl.constexpr,
):
    """One program handles one row; BLOCK_N >= n_cols. NaN counts as larger than everything, as in PyTorch."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=mask, other=-float("inf"))
    is_nan = x != x
    has_nan = tl.max(is_nan.to(tl.int32), axis=0) == 1
    largest = tl.max(tl.where(is_nan, -float("inf"), x), axis=0)
    is_largest = tl.where(has_nan, is_nan, x == largest)
    tl.store(mean_ptr + row, tl.sum(tl.where(mask, x, 0.0), axis=0) / n_cols)
    tl.store(max_ptr + row, tl.where(has_nan, float("nan"), largest))
    tl.store(argmax_ptr + row, tl.min(tl.where(is_largest & mask, cols, n_cols), axis=0))
    tl.store(n_above_ptr + row, tl.sum((mask & (x > threshold)).to(tl.int32), axis=0))


def run(x: torch.Tensor, threshold: float) -> dict[str, torch.Tensor]:
    n_rows, n_cols = x.shape
    out = {
        "mean": torch.empty(n_rows, dtype=torch.float32, device=x.device),
        "max": torch.empty(n_rows, dtype=torch.float32, device=x.device),
        "argmax": torch.empty(n_rows, dtype=torch.int64, device=x.device),
        "n_above": torch.empty(n_rows, dtype=torch.int32, device=x.device),
    }
    if n_rows > 0:
        BLOCK_N = triton.next_power_of_2(n_cols)
        row_stats_kernel[(n_rows,)](x, *out.values(), n_cols, threshold, *x.stride(), BLOCK_N=BLOCK_N)
    return out
