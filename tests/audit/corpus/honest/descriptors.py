"""Tensor descriptors need no masks: what is outside reads as zero and is not written."""
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))


def matmul(a, b):
    a, b = a.half().contiguous(), b.half().contiguous()
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    a_desc = TensorDescriptor(a, a.shape, a.stride(), [64, 32])
    b_desc = TensorDescriptor(b, b.shape, b.stride(), [32, 64])
    c_desc = TensorDescriptor(c, c.shape, c.stride(), [64, 64])
    matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a_desc, b_desc, c_desc, M, N, K, BM=64, BN=64, BK=32)
    return c
