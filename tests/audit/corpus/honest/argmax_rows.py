"""Index of the largest entry of each row, int64 as torch.argmax gives it."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 64], "N": [1, 127, 1000]}
REQUIRES = ["N >= 1"]


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.argmax(x, dim=1)


@triton.jit
def argmax_kernel(x_ptr, out_ptr, stride_m, stride_n, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=-float("inf"))
    idx = tl.argmax(x, axis=0)
    tl.store(out_ptr + row, idx)


def run(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(M, dtype=torch.int64, device=x.device)
    if M == 0:
        return out
    argmax_kernel[(M,)](x, out, x.stride(0), x.stride(1), N, BLOCK_SIZE=triton.next_power_of_2(N))
    return out
