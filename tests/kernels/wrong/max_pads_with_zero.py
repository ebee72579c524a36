"""Wrong: the padded lanes of a row maximum are filled with 0, so a row of negative values gives 0."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 6, 37], "N": [1, 5, 64, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the maximum of each row, [M]."""
    return torch.amax(x, dim=-1)


@triton.jit
def row_max_kernel(x_ptr, out_ptr, n_cols, stride_m, stride_n, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=0.0).to(tl.float32)
    has_nan = tl.max((x != x).to(tl.int32), axis=0)
    largest = tl.max(x, axis=0)
    tl.store(out_ptr + row, tl.where(has_nan == 1, float("nan"), largest))


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    row_max_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
    return out
