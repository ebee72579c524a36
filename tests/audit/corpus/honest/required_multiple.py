"""REQUIRES says that K is a multiple of the block."""
import torch
import triton
import triton.language as tl

INPUTS = {"a": "float16[M, K]", "b": "float16[K, N]"}
DIMS = {"M": [64, 65], "N": [32, 100], "K": [32, 128]}
REQUIRES = ["K % 32 == 0"]


def reference(a, b):
    return a @ b


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + (m % M)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def run(a, b):
    """a: [M, K], b: [K, N]."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    gemm[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a.contiguous(), b.contiguous(), c, M, N, K, BM=64, BN=64, BK=32)
    return c
