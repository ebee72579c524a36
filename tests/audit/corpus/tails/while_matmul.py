import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid = tl.program_id(0)
    width = tl.cdiv(N, BLOCK_N)
    rm = (pid // width) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (pid % width) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = 0
    while k < K:
        at = tl.load(a + rm[:, None] * K + (k + rk)[None, :], mask=rm[:, None] < M, other=0.0)
        bt = tl.load(b + (k + rk)[:, None] * N + rn[None, :], mask=rn[None, :] < N, other=0.0)
        acc += tl.dot(at, bt)
        k += BLOCK_K
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


def mm(a, b):
    a, b = a.half().contiguous(), b.half().contiguous()
    M, K, N = a.shape[0], a.shape[1], b.shape[1]
    c = torch.empty(M, N, device=a.device, dtype=torch.float16)
    mm_kernel[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](a, b, c, M, N, K, 64, 64, 32)
    return c
