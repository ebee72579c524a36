"""Matrix times vector, a block of rows for each program."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32[M, K]", "x": "float32[K]"}
DIMS = {"M": [16, 100], "K": [64, 1000]}


def reference(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return a @ x


@triton.jit
def matvec_kernel(a_ptr, x_ptr, y_ptr, M, K, stride_am, BM: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        mask = (rm[:, None] < M) & (rk[None, :] < K)
        a = tl.load(a_ptr + rm[:, None].to(tl.int64) * stride_am + rk[None, :], mask=mask)
        x = tl.load(x_ptr + rk, mask=rk < K, other=0.0)
        total += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + rm, total, mask=rm < M)


def run(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    a, x = a.contiguous(), x.contiguous()
    M, K = a.shape
    y = torch.empty(M, dtype=torch.float32, device=a.device)
    matvec_kernel[(triton.cdiv(M, 16),)](a, x, y, M, K, a.stride(0), BM=16, BK=128)
    return y
