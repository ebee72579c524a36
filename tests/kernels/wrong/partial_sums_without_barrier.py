"""Wrong: sums are stored by one thread and read back by all, as a block, with no barrier between."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 20], "N": [16, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the softmax of its rows' sums, [M]."""
    return x.sum(dim=1).softmax(dim=0)


@triton.jit
def softmax_of_sums_kernel(
    x_ptr, sums_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """sums_ptr: [n_rows]. ROWS >= n_rows, BLOCK >= n_cols."""
    cols = tl.arange(0, BLOCK)
    for row in tl.range(0, n_rows):
        offsets = row.to(tl.int64) * row_stride + cols.to(tl.int64) * col_stride
        tl.store(sums_ptr + row, tl.sum(tl.load(x_ptr + offsets, mask=cols < n_cols, other=0.0)))
    rows = tl.arange(0, ROWS)
    sums = tl.load(sums_ptr + rows, mask=rows < n_rows, other=float("-inf"))
    exponential = tl.exp(sums - tl.max(sums, axis=0))
    tl.store(out_ptr + rows, exponential / tl.sum(exponential, axis=0), mask=rows < n_rows)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows:
        blocks = {"ROWS": triton.next_power_of_2(n_rows), "BLOCK": max(1, triton.next_power_of_2(n_cols))}
        softmax_of_sums_kernel[(1,)](x, torch.empty_like(out), out, n_rows, n_cols, *x.stride(), **blocks)
    return out
