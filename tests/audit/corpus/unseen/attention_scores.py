"""Scaled attention scores: out[b, i, j] = sum_d q[b, i, d] * k[b, j, d] / sqrt(D).

q is [B, M, D], k is [B, N, D] and out is [B, M, N], where B counts batch times heads. The products are
accumulated in float32 and rounded once, to q's dtype.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"q": "bfloat16|float16[B, M, D]", "k": "bfloat16|float16[B, N, D]"}
DIMS = {"B": [1, 12], "M": [1, 65, 256], "N": [1, 100, 512], "D": [40, 64, 128]}


def reference(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q: [B, M, D], k: [B, N, D]. Returns [B, M, N] in q's dtype."""
    scores = torch.matmul(q.float(), k.float().transpose(1, 2)) * q.shape[-1] ** -0.5
    return scores.to(q.dtype)


@triton.jit
def scores_kernel(
    q_ptr,
    k_ptr,
    out_ptr,
    n_queries,
    n_keys,
    head_dim,
    q_stride_b,
    q_stride_m,
    k_stride_b,
    k_stride_n,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program computes a [BLOCK_M, BLOCK_N] tile of one head. q_ptr, k_ptr: unit stride along D."""
    tiles_m = tl.cdiv(n_queries, BLOCK_M)
    tiles_n = tl.cdiv(n_keys, BLOCK_N)
    pid = tl.program_id(0)
    batch = (pid // (tiles_m * tiles_n)).to(tl.int64)
    tile = pid % (tiles_m * tiles_n)
    rows = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    cols = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    row_mask = rows < n_queries
    col_mask = cols < n_keys
    q_rows = q_ptr + batch * q_stride_b + rows[:, None] * q_stride_m
    k_rows = k_ptr + batch * k_stride_b + cols[:, None] * k_stride_n

    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, head_dim, BLOCK_D):
        d = start + tl.arange(0, BLOCK_D)
        d_mask = (d < head_dim)[None, :]
        q = tl.load(q_rows + d[None, :], mask=row_mask[:, None] & d_mask, other=0.0).to(tl.float32)
        k = tl.load(k_rows + d[None, :], mask=col_mask[:, None] & d_mask, other=0.0).to(tl.float32)
        acc += tl.sum(q[:, None, :] * k[None, :, :], axis=2)

    out_offs = batch * n_queries * n_keys + rows[:, None] * n_keys + cols[None, :]
    tl.store(out_ptr + out_offs, acc * scale, mask=row_mask[:, None] & col_mask[None, :])


def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q: [B, M, D], k: [B, N, D]. Returns [B, M, N], contiguous, in q's dtype."""
    batch, n_queries, head_dim = q.shape
    n_keys = k.shape[1]
    if q.stride(2) != 1:
        q = q.contiguous()
    if k.stride(2) != 1:
        k = k.contiguous()
    out = torch.empty((batch, n_queries, n_keys), dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N, BLOCK_D = 32, 32, 16
    grid = (batch * triton.cdiv(n_queries, BLOCK_M) * triton.cdiv(n_keys, BLOCK_N),)
    scores_kernel[grid](
        q,
        k,
        out,
        n_queries,
        n_keys,
        head_dim,
        q.stride(0),
        q.stride(1),
        k.stride(0),
        k.stride(1),
        head_dim**-0.5,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=BLOCK_D,
        num_warps=8,
    )
    return out
