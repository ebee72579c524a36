import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attn_fwd(Q, K, V, O, sm_scale, stride_bh, stride_tok, N_CTX, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    start_m = tl.program_id(0)
    bh = tl.program_id(1).to(tl.int64)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    base = bh * stride_bh
    q = tl.load(Q + base + offs_m[:, None] * stride_tok + offs_d[None, :], mask=offs_m[:, None] < N_CTX, other=0.0)
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start_n in range(0, N_CTX, BLOCK_N):
        kv = base + (start_n + offs_n) * stride_tok
        k = tl.load(K + kv[:, None] + offs_d[None, :])
        s = tl.dot(q, tl.trans(k)) * sm_scale
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + kv[:, None] + offs_d[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(O + base + offs_m[:, None] * stride_tok + offs_d[None, :], acc.to(O.dtype.element_ty), mask=offs_m[:, None] < N_CTX)


def attention(q, k, v):
    """q, k, v: [batch, heads, tokens, head_dim], half precision, contiguous."""
    b, h, t, d = q.shape
    o = torch.empty_like(q)
    grid = (triton.cdiv(t, 128), b * h)
    _attn_fwd[grid](q, k, v, o, 1.0 / math.sqrt(d), q.stride(1), q.stride(2), t, BLOCK_M=128, BLOCK_N=64, D=d)
    return o
