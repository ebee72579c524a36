"""Attention forward over [Z*H, N_CTX, D], float16, not causal, online softmax; D is 32, 64 or 128."""

import torch
import triton
import triton.language as tl


@triton.jit
def attn_kernel(Q, K, V, Out, sm_scale, stride_h, stride_n, N_CTX,
                D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * stride_h
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + base + offs_m[:, None] * stride_n + offs_d[None, :], mask=offs_m[:, None] < N_CTX, other=0.0)
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for start_n in range(0, N_CTX, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_mask = offs_n[:, None] < N_CTX
        k = tl.load(K + base + offs_n[:, None] * stride_n + offs_d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(V + base + offs_n[:, None] * stride_n + offs_d[None, :], mask=kv_mask, other=0.0)
        qk = tl.dot(q, tl.trans(k)) * sm_scale
        qk = tl.where(offs_n[None, :] < N_CTX, qk, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp(qk - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc += tl.dot(p.to(tl.float16), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(Out + base + offs_m[:, None] * stride_n + offs_d[None, :], acc.to(tl.float16), mask=offs_m[:, None] < N_CTX)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float) -> torch.Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    H, N_CTX, D = q.shape
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(N_CTX, 64), H)
    attn_kernel[grid](q, k, v, out, sm_scale, q.stride(0), q.stride(1), N_CTX, D=D, BLOCK_M=64, BLOCK_N=32)
    return out
