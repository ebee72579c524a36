"""Wrong: the accumulator has the inputs' dtype, so float16 and bfloat16 products lose digits as K grows."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32|bfloat16|float16[M, K]", "b": "float32|bfloat16|float16[K, N]"}
DIMS = {"M": [1, 20, 64], "N": [1, 33], "K": [1, 16, 100, 2500]}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K]; b: [K, N], in a's dtype. Returns [M, N] in a's dtype."""
    return a @ b


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Program (i, j) computes one BLOCK_M x BLOCK_N tile of out_ptr: [M, N], contiguous."""
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    lanes = tl.arange(0, BLOCK_K).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=a_ptr.dtype.element_ty)
    for start in range(0, K, BLOCK_K):
        a_k = (start + lanes)[None, :]
        b_k = (start + lanes)[:, None]
        a = tl.load(a_ptr + rows * stride_am + a_k * stride_ak, mask=(rows < M) & (a_k < K), other=0.0)
        b = tl.load(b_ptr + b_k * stride_bk + cols * stride_bn, mask=(b_k < K) & (cols < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee").to(acc.dtype)
    tl.store(out_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    BLOCK = 32
    grid = (triton.cdiv(M, BLOCK), triton.cdiv(N, BLOCK))
    matmul_kernel[grid](
        a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M=BLOCK, BLOCK_N=BLOCK, BLOCK_K=16
    )
    return out
