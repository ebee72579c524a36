import torch
import triton
import triton.language as tl


@triton.jit
def outer_kernel(u, v, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    a = tl.load(u + i, mask=i < m, other=0.0)
    b = tl.load(v + j, mask=j < n, other=0.0)
    tl.store(out + i[:, None] * n + j[None, :], a[:, None] * b[None, :], mask=(i[:, None] < m) & (j[None, :] < n))


def outer(u, v):
    m, n = u.shape[0], v.shape[0]
    out = torch.empty((m, n), device=u.device, dtype=u.dtype)
    grid = (32, 32)
    outer_kernel[grid](u, v, out, m, n, BM=32, BN=32)
    return out
