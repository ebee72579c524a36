"""Transposed copy with block pointers."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    src = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(pid_m * BLOCK_M, pid_n * BLOCK_N), block_shape=(BLOCK_M, BLOCK_N), order=(1, 0))
    dst = tl.make_block_ptr(y_ptr, shape=(N, M), strides=(M, 1), offsets=(pid_n * BLOCK_N, pid_m * BLOCK_M), block_shape=(BLOCK_N, BLOCK_M), order=(1, 0))
    tile = tl.load(src)
    tl.store(dst, tl.trans(tile))


def transpose(x):
    x = x.contiguous()
    M, N = x.shape
    y = torch.empty((N, M), device=x.device, dtype=x.dtype)
    transpose_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, y, M, N, BLOCK_M=32, BLOCK_N=32)
    return y
