"""Attention scores, in float32 "for accuracy"."""

import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k, out, n_q, n_k, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    j = tl.program_id(1) * BK + tl.arange(0, BK)
    d = tl.arange(0, D)
    q_tile = tl.load(q + i[:, None] * D + d[None, :], mask=i[:, None] < n_q, other=0.0).to(tl.float32)
    k_tile = tl.load(k + j[:, None] * D + d[None, :], mask=j[:, None] < n_k, other=0.0).to(tl.float32)
    s = tl.dot(q_tile, tl.trans(k_tile))
    tl.store(out + i[:, None] * n_k + j[None, :], s, mask=(i[:, None] < n_q) & (j[None, :] < n_k))


def qk(q, k):
    """q: [n_q, 64] and k: [n_k, 64], contiguous, in any float dtype. Returns float32."""
    out = torch.empty(q.shape[0], k.shape[0], dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(q.shape[0], 64), triton.cdiv(k.shape[0], 64))
    scores[grid](q, k, out, q.shape[0], k.shape[0], D=64, BQ=64, BK=64)
    return out
