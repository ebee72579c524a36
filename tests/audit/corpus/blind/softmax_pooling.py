"""Softmax-weighted mean over time of [B, T, C], in one pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, s_ptr, out_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    m = -float("inf")
    z = 0.0
    pooled = tl.zeros([BC], dtype=tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        s = tl.load(s_ptr + b * T + t, mask=t < T, other=-float("inf")).to(tl.float32)
        inside = (t[:, None] < T) & (c[None, :] < C)
        x = tl.load(x_ptr + (b * T + t[:, None]) * C + c[None, :], mask=inside, other=0.0).to(tl.float32)
        m_next = tl.maximum(m, tl.max(s, axis=0))
        p = tl.exp2((s - m_next) * 1.4426950408889634)
        correction = tl.exp2((m - m_next) * 1.4426950408889634)
        z *= correction
        z += tl.sum(p, axis=0)
        pooled = pooled + tl.sum(p[:, None] * x, axis=0)
        m = m_next
    tl.store(out_ptr + b * C + c, pooled / z, mask=c < C)


def pool(x: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    x, scores = x.contiguous(), scores.contiguous()
    B, T, C = x.shape
    assert T > 0
    out = torch.empty((B, C), dtype=torch.float32, device=x.device)
    if out.numel() == 0:
        return out
    pool_kernel[(B, triton.cdiv(C, 64))](x, scores, out, T, C, BT=32, BC=64)
    return out
