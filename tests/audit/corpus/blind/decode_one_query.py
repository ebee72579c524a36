"""Attention of one query over a cache, a block of keys at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(q_ptr, k_ptr, v_ptr, o_ptr, scale, T, D: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32)
    best = float("-inf")
    denominator = 0.0
    numerator = tl.zeros([D], dtype=tl.float32)
    for start in range(0, T, BLOCK):
        t = start + tl.arange(0, BLOCK)
        live = t < T
        at = head * T * D + t[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=live[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=live[:, None], other=0.0).to(tl.float32)
        s = tl.where(live, tl.sum(q[None, :] * k, axis=1) * scale, float("-inf"))
        new_best = tl.maximum(best, tl.max(s, axis=0))
        shrink = tl.exp(best - new_best)
        w = tl.exp(s - new_best)
        denominator = denominator * shrink + tl.sum(w, axis=0)
        numerator += tl.sum(w[:, None] * v, axis=0)
        best = new_best
    tl.store(o_ptr + head * D + d, numerator / denominator)


def decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    H, T, D = k.shape
    assert D in (32, 64, 128) and T > 0
    out = torch.empty((H, D), dtype=torch.float32, device=q.device)
    decode_kernel[(H,)](q, k, v, out, scale, T, D=D, BLOCK=64)
    return out
