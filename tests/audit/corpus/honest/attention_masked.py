"""Scores of absent keys are -inf; keys are loaded as zeros."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def attn(Q, K, V, O, scale, stride_h, stride_t, T, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1).to(tl.int64) * stride_h
    d = tl.arange(0, D)
    q = tl.load(Q + base + m[:, None] * stride_t + d[None, :], mask=m[:, None] < T, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(K + base + n[:, None] * stride_t + d[None, :], mask=n[:, None] < T, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(n[None, :] < T, s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(V + base + n[:, None] * stride_t + d[None, :], mask=n[:, None] < T, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    out = acc / total[:, None]
    tl.store(O + base + m[:, None] * stride_t + d[None, :], out.to(O.dtype.element_ty), mask=m[:, None] < T)


def attention(q, k, v):
    """q, k, v: bfloat16 [heads, tokens, 64]."""
    q, k, v = (t.to(torch.bfloat16).contiguous() for t in (q, k, v))
    h, t, d = q.shape
    assert d == 64
    o = torch.empty_like(q)
    attn[(triton.cdiv(t, 64), h)](q, k, v, o, 1.0 / math.sqrt(d), q.stride(0), q.stride(1), t, BM=64, BN=64, D=64)
    return o
