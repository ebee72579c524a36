"""Batched matrix product in full float32: out[b] = x[b] @ y[b]."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[B, M, K]", "y": "float32[B, K, N]"}
DIMS = {"B": [1, 4], "M": [64, 100], "N": [64, 72], "K": [64, 130]}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x, y)


@triton.jit
def bmm_kernel(x_ptr, y_ptr, o_ptr, M, N, K,
               sxb, sxm, sxk, syb, syk, syn, sob, som, son,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    batch = tl.program_id(2)
    x_ptr += batch * sxb
    y_ptr += batch * syb
    o_ptr += batch * sob
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * sxm + rk[None, :] * sxk, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        y = tl.load(y_ptr + rk[:, None] * syk + rn[None, :] * syn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(o_ptr + rm[:, None] * som + rn[None, :] * son, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    B, M, K = x.shape
    _, _, N = y.shape
    out = torch.empty((B, M, N), device=x.device, dtype=x.dtype)
    if out.numel() == 0:
        return out
    BM, BN, BK = 32, 32, 32
    grid = (triton.cdiv(M, BM), triton.cdiv(N, BN), B)
    bmm_kernel[grid](x, y, out, M, N, K, *x.stride(), *y.stride(), *out.stride(), BM=BM, BN=BN, BK=BK, num_warps=4)
    return out
