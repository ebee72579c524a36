"""Honest: promises as experts make them, which the last block breaks in lanes that no store keeps."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32[M, K]", "b": "float32[K, N]"}
DIMS = {"M": [16, 50], "N": [16, 100], "K": [16, 40]}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K]; b: [K, N]. Returns their product."""
    return a @ b


@triton.jit
def product_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_stride_m,
    a_stride_k,
    b_stride_k,
    b_stride_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tl.assume(K >= 0)
    first_row = tl.multiple_of(tl.program_id(0) * BLOCK_M, BLOCK_M)
    first_col = tl.multiple_of(tl.program_id(1) * BLOCK_N, BLOCK_N)
    rows = (first_row + tl.arange(0, BLOCK_M)) % M
    cols = first_col + tl.arange(0, BLOCK_N)
    cols = tl.where(cols < N, cols, 0)
    rows = tl.max_contiguous(tl.multiple_of(rows, BLOCK_M), BLOCK_M).to(tl.int64)
    cols = tl.max_contiguous(tl.multiple_of(cols, BLOCK_N), BLOCK_N).to(tl.int64)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        ks = tl.multiple_of(start, BLOCK_K) + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_stride_m + ks[None, :] * a_stride_k, mask=(ks < K)[None, :], other=0.0
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_stride_k + cols[None, :] * b_stride_n, mask=(ks < K)[:, None], other=0.0
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    out_rows = first_row.to(tl.int64) + tl.arange(0, BLOCK_M)
    out_cols = first_col + tl.arange(0, BLOCK_N)
    mask = (out_rows < M)[:, None] & (out_cols < N)[None, :]
    tl.store(out_ptr + out_rows[:, None] * N + out_cols[None, :], total, mask=mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
        blocks = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 16}
        product_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), **blocks)
    return out
