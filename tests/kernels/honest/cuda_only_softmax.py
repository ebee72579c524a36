"""Honest: the wrapper is written for CUDA only: it asserts is_cuda, allocates on "cuda" and synchronises."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 6, 35], "N": [1, 10, 128, 500]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the softmax of each row, [M, N]."""
    return torch.softmax(x, dim=-1)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_m, stride_n, BLOCK_N: tl.constexpr):
    """One program handles one row; BLOCK_N >= n_cols."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda, "softmax: x must be on the GPU"
    n_rows, n_cols = x.shape
    with torch.cuda.device(x.device):
        out = torch.empty((n_rows, n_cols), dtype=x.dtype, device="cuda")
        if out.numel() == 0:
            return out
        BLOCK_N = triton.next_power_of_2(n_cols)
        softmax_kernel[(n_rows,)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N)
        torch.cuda.synchronize()
    return out
