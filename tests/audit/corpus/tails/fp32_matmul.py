import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, K]", "w": "float32[N, K]"}
DIMS = {"M": [1, 65], "N": [64, 100], "K": [32, 257]}


def reference(x, w):
    return torch.nn.functional.linear(x, w)


@triton.jit
def linear_kernel(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def run(x, w):
    M, K = x.shape
    N = w.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=torch.float32)
    linear_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x.contiguous(), w.contiguous(), y, M, N, K, BM=32, BN=32, BK=32)
    return y
