"""Attention of one new token per sequence over a key/value cache: the decoding step of a language model."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    stride_qb,
    stride_qh,
    stride_cb,
    stride_ch,
    stride_ct,
    stride_ob,
    stride_oh,
    HEAD_DIM: tl.constexpr,
    GROUP: tl.constexpr,
    KV_LEN: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per (query head, sequence). Keys and values share their strides; the last stride is 1."""
    head = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    kv_head = (head // GROUP).to(tl.int64)
    dims = tl.arange(0, BLOCK_D)
    dim_mask = dims < HEAD_DIM
    steps = tl.arange(0, BLOCK_T)

    q = tl.load(q_ptr + batch * stride_qb + head * stride_qh + dims, mask=dim_mask, other=0.0)
    q = q.to(tl.float32) * scale
    cache = batch * stride_cb + kv_head * stride_ch

    m = float("-inf")
    l = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, KV_LEN, BLOCK_T):
        t = start + steps
        mask = (t < KV_LEN)[:, None] & dim_mask[None, :]
        offs = cache + t[:, None].to(tl.int64) * stride_ct + dims[None, :]
        k = tl.load(k_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        s = tl.sum(q[None, :] * k, axis=1)
        s = tl.where(t < KV_LEN, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=0))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new)
        v = tl.load(v_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        l = l * alpha + tl.sum(p, axis=0)
        m = m_new

    out = out_ptr + batch * stride_ob + head * stride_oh + dims
    tl.store(out, acc / l, mask=dim_mask)


class KVCache:
    """Keys and values of the past tokens of a batch, [batch, kv_heads, max_len, head_dim] each."""

    def __init__(self, batch, kv_heads, max_len, head_dim, dtype=torch.float16, device="cuda"):
        shape = (batch, kv_heads, max_len, head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros(shape, dtype=dtype, device=device)
        self.length = 0

    def append(self, k: torch.Tensor, v: torch.Tensor) -> None:
        """k, v: [batch, kv_heads, n_new, head_dim]"""
        end = self.length + k.shape[2]
        if end > self.k.shape[2]:
            raise IndexError("the cache is full")
        self.k[:, :, self.length : end] = k
        self.v[:, :, self.length : end] = v
        self.length = end

    @torch.no_grad()
    def attend(self, q: torch.Tensor) -> torch.Tensor:
        """q: [batch, heads, head_dim]. Returns the same shape and dtype."""
        batch, heads, head_dim = q.shape
        kv_heads = self.k.shape[1]
        if heads % kv_heads:
            raise ValueError(f"{heads} query heads do not divide over {kv_heads} key heads")
        if self.length == 0:
            raise ValueError("the cache is empty")
        q = q.contiguous()
        out = torch.empty_like(q)
        decode_kernel[(heads, batch)](
            q,
            self.k,
            self.v,
            out,
            1.0 / math.sqrt(head_dim),
            q.stride(0),
            q.stride(1),
            self.k.stride(0),
            self.k.stride(1),
            self.k.stride(2),
            out.stride(0),
            out.stride(1),
            HEAD_DIM=head_dim,
            GROUP=heads // kv_heads,
            KV_LEN=self.length,
            BLOCK_T=64,
            BLOCK_D=triton.next_power_of_2(head_dim),
            num_warps=4,
        )
        return out
