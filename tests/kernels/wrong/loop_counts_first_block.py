"""Wrong: the loop makes as many steps as blocks of 64 need, and the second configuration has shorter ones."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 6, 30], "N": [1, 100, 250]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns float32 [M]: the sum of each row."""
    return x.float().sum(dim=1)


@triton.autotune([triton.Config({"BLOCK_N": 64}), triton.Config({"BLOCK_N": 32})], key=["n_cols"])
@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """Program i sums row i of x_ptr: [M, n_cols] into out_ptr: float32 [M]."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK_N], tl.float32)
    for step in range(tl.cdiv(n_cols, 64)):
        cols = step * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
        x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=cols < n_cols, other=0.0)
        total += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.shape[0] > 0:
        row_sum_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1))
    return out
