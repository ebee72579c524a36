"""Mean of each row, in float32."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 64], "N": [1, 128, 1000]}
REQUIRES = ["N >= 1"]


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.float().mean(dim=1)


@triton.jit
def row_mean_kernel(x_ptr, out_ptr, stride_m, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, N, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride_m + cols, mask=cols < N).to(tl.float32)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + row, total / N)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    M, N = x.shape
    out = torch.empty(M, dtype=torch.float32, device=x.device)
    if M == 0:
        return out
    row_mean_kernel[(M,)](x, out, x.stride(0), N, BLOCK_SIZE=256)
    return out
