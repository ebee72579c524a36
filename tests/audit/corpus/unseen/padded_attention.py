# Flash attention (forward only) for batches of sequences of different lengths. The batch carries a key mask
# [B, S], True where a token is real; tokenizers may pad on either side.
import math

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def _attend_kernel(
    Q, K, V, KeyMask, Out,
    stride_qb, stride_qh, stride_qs,
    stride_kb, stride_kh, stride_ks,
    stride_vb, stride_vh, stride_vs,
    stride_ob, stride_oh, stride_os,
    stride_mb,
    H, S_Q, S_K, qk_scale,
    HEAD_DIM: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    bh = tl.program_id(1).to(tl.int64)
    b = bh // H
    h = bh % H
    offs_q = tl.program_id(0).to(tl.int64) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    offs_d = tl.arange(0, HEAD_DIM)
    q_mask = (offs_q < S_Q)[:, None]

    q_ptrs = Q + b * stride_qb + h * stride_qh + offs_q[:, None] * stride_qs + offs_d[None, :]
    k_base = K + b * stride_kb + h * stride_kh
    v_base = V + b * stride_vb + h * stride_vh
    mask_base = KeyMask + b * stride_mb
    q = tl.load(q_ptrs, mask=q_mask, other=0.0)

    m_i = tl.full([BLOCK_Q], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_Q], dtype=tl.float32)
    acc = tl.zeros([BLOCK_Q, HEAD_DIM], dtype=tl.float32)

    for start in range(0, S_K, BLOCK_K):
        keys = start + offs_k
        in_range = keys < S_K
        real = tl.load(mask_base + keys, mask=in_range, other=0) != 0
        k = tl.load(k_base + keys[None, :] * stride_ks + offs_d[:, None], mask=in_range[None, :], other=0.0)
        v = tl.load(v_base + keys[:, None] * stride_vs + offs_d[None, :], mask=in_range[:, None], other=0.0)

        qk = tl.dot(q, k) * qk_scale
        qk = tl.where(real[None, :], qk, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        alpha = tl.exp2(m_i - m_new)
        p = tl.exp2(qk - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    o_ptrs = Out + b * stride_ob + h * stride_oh + offs_q[:, None] * stride_os + offs_d[None, :]
    tl.store(o_ptrs, acc.to(Out.dtype.element_ty), mask=q_mask)


def padded_attention(q, k, v, key_mask, scale=None):
    """q: [B, H, S_q, D], k and v: [B, H, S_k, D], half precision; key_mask: [B, S_k], bool.

    Every sequence has at least one real token. Returns [B, H, S_q, D].
    """
    B, H, S_Q, D = q.shape
    S_K = k.shape[2]
    assert q.dtype in (torch.float16, torch.bfloat16) and q.dtype == k.dtype == v.dtype
    assert D in (16, 32, 64, 128), "unsupported head dimension"
    assert B * H <= 65535
    q, k, v = (t if t.stride(-1) == 1 else t.contiguous() for t in (q, k, v))
    mask = key_mask.contiguous().view(torch.uint8)
    out = torch.empty((B, H, S_Q, D), dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    BLOCK_Q, BLOCK_K = 64, 64
    grid = (triton.cdiv(S_Q, BLOCK_Q), B * H)
    _attend_kernel[grid](
        q, k, v, mask, out,
        q.stride(0), q.stride(1), q.stride(2),
        k.stride(0), k.stride(1), k.stride(2),
        v.stride(0), v.stride(1), v.stride(2),
        out.stride(0), out.stride(1), out.stride(2),
        mask.stride(0),
        H, S_Q, S_K, scale * LOG2E,
        HEAD_DIM=D, BLOCK_Q=BLOCK_Q, BLOCK_K=BLOCK_K,
        num_warps=4, num_stages=2,
    )
    return out
