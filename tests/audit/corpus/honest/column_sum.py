"""Sum over the rows of a matrix: out[n] = sum_m x[m, n], accumulated in float32."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|float16[M, N]"}
DIMS = {"M": [1, 100, 512], "N": [1, 128, 500]}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.float().sum(dim=0)


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, M, N, stride_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0)
    cols = pid * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        acc += tl.load(x_ptr + rows[:, None] * stride_m + cols[None, :], mask=mask, other=0.).to(tl.float32)
    total = tl.sum(acc, axis=0)
    tl.store(out_ptr + cols, total, mask=cols < N)


def run(x: torch.Tensor) -> torch.Tensor:
    assert x.is_contiguous()
    M, N = x.shape
    out = torch.empty((N,), dtype=torch.float32, device=x.device)
    if N == 0:
        return out
    grid = lambda meta: (triton.cdiv(N, meta["BLOCK_N"]),)
    column_sum_kernel[grid](x, out, M, N, x.stride(0), BLOCK_M=32, BLOCK_N=128)
    return out
