"""Forward pass of attention with tensor descriptors (TMA on Hopper), for half precision.

q, k, v: [B, H, S, D] with D in {32, 64, 128}; the softmax runs online in float32.
"""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _load_tile(desc, head, start, ROWS: tl.constexpr, COLS: tl.constexpr):
    return desc.load([head, start, 0]).reshape(ROWS, COLS)


@triton.jit
def attention_fwd_kernel(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    lse_ptr,
    seq_len,
    qk_scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    """One program: BLOCK_M queries of one head. qk_scale = log2(e) / sqrt(HEAD_DIM)."""
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    rows = start_m + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)

    q = _load_tile(q_desc, head, start_m, BLOCK_M, HEAD_DIM)
    m_i = tl.full((BLOCK_M, 1), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M, 1), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)

    end = tl.minimum(start_m + BLOCK_M, seq_len) if CAUSAL else seq_len
    for start_n in tl.range(0, end, BLOCK_N):
        k = _load_tile(k_desc, head, start_n, BLOCK_N, HEAD_DIM)
        s = tl.dot(q, k.T) * qk_scale
        keep = (start_n + cols)[None, :] < seq_len
        if CAUSAL:
            keep = keep & (rows[:, None] >= (start_n + cols)[None, :])
        s = tl.where(keep, s, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(s, axis=1, keepdim=True))
        p = tl.exp2(s - m_new)
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1, keep_dims=True)
        v = _load_tile(v_desc, head, start_n, BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha)
        m_i = m_new

    out = (acc / l_i).to(q.dtype)
    o_desc.store([head, start_m, 0], out.reshape(1, BLOCK_M, HEAD_DIM))
    lse = tl.reshape(m_i + tl.log2(l_i), (BLOCK_M,))
    tl.store(lse_ptr + head.to(tl.int64) * seq_len + rows, lse, mask=rows < seq_len)


def attention_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False):
    """Returns (out [B, H, S, D], lse [B, H, S] in base 2)."""
    B, H, S, D = q.shape
    if D not in (32, 64, 128):
        raise ValueError(f"head dimension {D} is not supported")
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError("attention_forward is for float16 and bfloat16")
    if not (q.shape == k.shape == v.shape and q.dtype == k.dtype == v.dtype):
        raise ValueError("q, k and v must agree in shape and dtype")

    q, k, v = (t.contiguous().view(B * H, S, D) for t in (q, k, v))
    out = torch.empty_like(q)
    lse = torch.empty((B * H, S), dtype=torch.float32, device=q.device)

    block_m, block_n = 128, 64
    q_desc = TensorDescriptor.from_tensor(q, [1, block_m, D])
    k_desc = TensorDescriptor.from_tensor(k, [1, block_n, D])
    v_desc = TensorDescriptor.from_tensor(v, [1, block_n, D])
    o_desc = TensorDescriptor.from_tensor(out, [1, block_m, D])
    grid = (triton.cdiv(S, block_m), B * H)
    attention_fwd_kernel[grid](
        q_desc,
        k_desc,
        v_desc,
        o_desc,
        lse,
        S,
        math.log2(math.e) / math.sqrt(D),
        CAUSAL=causal,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        HEAD_DIM=D,
        num_warps=8 if D == 128 else 4,
        num_stages=3,
    )
    return out.view(B, H, S, D), lse.view(B, H, S)
