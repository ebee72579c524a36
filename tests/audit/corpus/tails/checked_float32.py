import torch
import triton
import triton.language as tl


@triton.jit
def lin(x_ptr, w_ptr, o_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    xp = x_ptr + m[:, None] * K + k[None, :]
    wp = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for kk in range(0, K, BK):
        x = tl.load(xp, mask=(m[:, None] < M) & (k[None, :] < K - kk), other=0.0)
        w = tl.load(wp, mask=(n[None, :] < N) & (k[:, None] < K - kk), other=0.0)
        acc += tl.dot(x, w)
        xp += BK
        wp += BK
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def linear(x, w):
    if x.dtype != torch.float32 or w.dtype != torch.float32:
        raise TypeError("float32 only")
    x, w = x.contiguous(), w.contiguous()
    M, K = x.shape
    N = w.shape[0]
    o = torch.empty(M, N, device=x.device, dtype=torch.float32)
    lin[(triton.cdiv(M, 64), triton.cdiv(N, 64))](x, w, o, M, N, K, BM=64, BN=64, BK=32)
    return o
