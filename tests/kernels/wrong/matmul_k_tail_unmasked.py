"""Wrong: the last, partial step along K is not masked, so it multiplies what lies behind the operands."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, K]", "w": "float32|bfloat16|float16[K, N]"}
DIMS = {"M": [1, 33], "N": [1, 40], "K": [16, 32, 50]}


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype. Returns [M, N] in that dtype."""
    return x @ w


@triton.jit
def matmul_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    M,
    N,
    K,
    x_row_stride,
    x_col_stride,
    w_row_stride,
    w_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Program (i, j) computes a BLOCK_M x BLOCK_N tile of out_ptr: [M, N], contiguous."""
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    steps = tl.arange(0, BLOCK_K).to(tl.int64)
    x_ptrs = x_ptr + rows * x_row_stride + steps[None, :] * x_col_stride
    w_ptrs = w_ptr + steps[:, None] * w_row_stride + cols * w_col_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in tl.range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=rows < M, other=0.0)
        w = tl.load(w_ptrs, mask=cols < N, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += tl.cast(x_col_stride, tl.int64) * BLOCK_K
        w_ptrs += tl.cast(w_row_stride, tl.int64) * BLOCK_K
    tl.store(out_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], any strides. Returns [M, N], contiguous, in their dtype."""
    (M, K), N = x.shape, w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 16
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    matmul_kernel[grid](
        x, w, out, M, N, K, *x.stride(), *w.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
    )
    return out
