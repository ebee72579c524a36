"""Scaled attention scores, scores[b, h, m, n] = sum_d q[b, h, m, d] * k[b, h, n, d] / sqrt(D)."""

import math

import torch
import triton
import triton.language as tl

INPUTS = {
    "q": "float32|float16[B, H, M, D]",
    "k": "float32|float16[B, H, N, D]",
}
DIMS = {"B": [1, 2], "H": [1, 6], "M": [1, 64, 200], "N": [64, 200, 333], "D": [32, 80, 128]}


def reference(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q: [B, H, M, D], k: [B, H, N, D]. Returns [B, H, M, N] in float32."""
    return torch.matmul(q.float(), k.float().transpose(-1, -2)) / math.sqrt(q.shape[-1])


@triton.jit
def qk_kernel(
    q_ptr,
    k_ptr,
    s_ptr,
    scale,
    n_heads,
    M,
    N,
    D,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program computes one BLOCK_M x BLOCK_N tile of one head. s_ptr: [B, H, M, N], contiguous."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    bh = (pid // tiles).to(tl.int64)
    b = bh // n_heads
    h = bh % n_heads
    tile = pid % tiles

    offs_m = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D)

    q_base = q_ptr + b * stride_qb + h * stride_qh
    k_base = k_ptr + b * stride_qb + h * stride_qh
    q_tile = q_base + offs_m[:, None].to(tl.int64) * stride_qm + offs_d[None, :] * stride_qd
    k_tile = k_base + offs_n[None, :].to(tl.int64) * stride_kn + offs_d[:, None] * stride_kd
    q = tl.load(q_tile, mask=(offs_m < M)[:, None] & (offs_d < D)[None, :], other=0.0)
    k = tl.load(k_tile, mask=(offs_n < N)[None, :] & (offs_d < D)[:, None], other=0.0)

    s = tl.dot(q, k, input_precision="ieee") * scale
    s_tile = s_ptr + bh * M * N + offs_m[:, None].to(tl.int64) * N + offs_n[None, :]
    tl.store(s_tile, s, mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q: [B, H, M, D], k: [B, H, N, D], any strides. Returns [B, H, M, N], contiguous, in float32."""
    B, H, M, D = q.shape
    N = k.shape[2]
    scores = torch.empty((B, H, M, N), dtype=torch.float32, device=q.device)
    if scores.numel() == 0:
        return scores
    block_m, block_n = 64, 64
    grid = (B * H * triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    qk_kernel[grid](
        q,
        k,
        scores,
        1.0 / math.sqrt(D),
        H,
        M,
        N,
        D,
        *q.stride(),
        *k.stride(),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
        num_warps=4,
    )
    return scores
