"""Wrong: the row stride is passed but columns are taken as adjacent, so transposed inputs are misread."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 6, 40], "N": [1, 9, 64, 200]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the log-softmax of each row, [M, N]."""
    return torch.log_softmax(x, dim=-1)


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, n_cols, x_row_stride, BLOCK_N: tl.constexpr):
    """One program handles one row; BLOCK_N >= n_cols."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    shifted = x - tl.max(x, axis=0)
    log_total = tl.log(tl.sum(tl.exp(shifted), axis=0))
    tl.store(out_ptr + row * n_cols + cols, shifted - log_total, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    log_softmax_kernel[(n_rows,)](x, out, n_cols, x.stride(0), BLOCK_N=BLOCK_N)
    return out
