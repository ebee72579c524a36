"""Honest: a persistent kernel, fewer programs than tiles, each looping over several of them."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32|bfloat16|float16[M, K]", "b": "float32|bfloat16|float16[K, N]"}
DIMS = {"M": [1, 33, 150], "N": [1, 40, 130], "K": [1, 16, 100]}

PROGRAMS = 4


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K]; b: [K, N], in a's dtype. Returns [M, N] in a's dtype."""
    return a @ b


@triton.jit
def persistent_matmul_kernel(
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
    """Program p computes tiles p, p + n_programs, ... of out_ptr: [M, N], contiguous."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    n_tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    lanes = tl.arange(0, BLOCK_K).to(tl.int64)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        first_row = (tile // tiles_n).to(tl.int64) * BLOCK_M
        first_col = (tile % tiles_n).to(tl.int64) * BLOCK_N
        rows = (first_row + tl.arange(0, BLOCK_M))[:, None]
        cols = (first_col + tl.arange(0, BLOCK_N))[None, :]
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            a_k = (start + lanes)[None, :]
            b_k = (start + lanes)[:, None]
            a = tl.load(a_ptr + rows * stride_am + a_k * stride_ak, mask=(rows < M) & (a_k < K), other=0.0)
            b = tl.load(b_ptr + b_k * stride_bk + cols * stride_bn, mask=(b_k < K) & (cols < N), other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        tl.store(out_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 16
    n_tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    persistent_matmul_kernel[(min(PROGRAMS, n_tiles),)](
        a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
    )
    return out
