"""The wrapper asserts that sizes are multiples of the blocks."""
import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    K2, N = b.shape
    assert K == K2
    assert M % BLOCK == 0 and N % BLOCK == 0 and K % BLOCK == 0, "sizes must be multiples of 64"
    a, b = a.half().contiguous(), b.half().contiguous()
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    matmul_kernel[(M // BLOCK, N // BLOCK)](a, b, c, M, N, K, BM=BLOCK, BN=BLOCK, BK=BLOCK)
    return c
