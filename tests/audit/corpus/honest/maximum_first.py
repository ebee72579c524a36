"""Softmax-weighted sum in two passes: the maximum first, so that nothing is rescaled."""

import torch
import triton
import triton.language as tl


@triton.jit
def two_pass_kernel(s_ptr, v_ptr, out_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, D)
    m = -float("inf")
    z = 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        s = tl.load(s_ptr + row * N + i, mask=i < N, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(s, axis=0))
        z = z * tl.exp(m - m_new) + tl.sum(tl.exp(s - m_new), axis=0)
        m = m_new
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        s = tl.load(s_ptr + row * N + i, mask=i < N, other=-float("inf")).to(tl.float32)
        v = tl.load(v_ptr + i[:, None] * D + d[None, :], mask=i[:, None] < N, other=0.0).to(tl.float32)
        acc += tl.sum(tl.exp(s - m)[:, None] * v, axis=0)
    tl.store(out_ptr + row * D + d, acc / z)


def weighted(s: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    s, v = s.contiguous(), v.contiguous()
    M, N = s.shape
    D = v.shape[1]
    assert D in (16, 32, 64) and N > 0
    out = torch.empty((M, D), dtype=torch.float32, device=s.device)
    if M == 0:
        return out
    two_pass_kernel[(M,)](s, v, out, N, D=D, BLOCK=64)
    return out
