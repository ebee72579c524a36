import torch
import triton
import triton.language as tl


@triton.jit
def decode_attn(q_ptr, k_ptr, v_ptr, o_ptr, seq_len, scale, s_kh, s_kt, BLOCK_T: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32)
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    for t0 in range(0, seq_len, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        valid = t < seq_len
        k = tl.load(k_ptr + head * s_kh + t[:, None] * s_kt + d[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
        s = tl.sum(k * q[None, :], axis=1) * scale
        s = tl.where(valid, s, 0.0)
        m_new = tl.maximum(m, tl.max(s, axis=0))
        p = tl.exp(s - m_new)
        corr = tl.exp(m - m_new)
        v = tl.load(v_ptr + head * s_kh + t[:, None] * s_kt + d[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
        acc = acc * corr + tl.sum(p[:, None] * v, axis=0)
        l = l * corr + tl.sum(p, axis=0)
        m = m_new
    tl.store(o_ptr + head * D + d, (acc / l).to(o_ptr.dtype.element_ty))


def decode(q, k, v):
    """q: [heads, 128]; k, v: [heads, tokens, 128], contiguous."""
    o = torch.empty_like(q)
    decode_attn[(q.shape[0],)](q, k, v, o, k.shape[1], 128**-0.5, k.stride(0), k.stride(1), BLOCK_T=64, D=128)
    return o
