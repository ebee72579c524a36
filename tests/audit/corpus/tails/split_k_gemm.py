"""Split-K GEMM for skinny problems. Partial sums are added atomically."""

import torch
import triton
import triton.language as tl


@triton.jit
def splitk_kernel(x, w, y, m, n, k, ldx, ldw, ldy, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, SPLIT: tl.constexpr):
    tile_m = tl.program_id(0)
    tile_n = tl.program_id(1)
    part = tl.program_id(2)
    rm = tile_m * TM + tl.arange(0, TM)
    rn = tile_n * TN + tl.arange(0, TN)
    rk = part * TK + tl.arange(0, TK)
    px = x + rm[:, None] * ldx + rk[None, :]
    pw = w + rk[:, None] * ldw + rn[None, :]
    in_m = rm < m
    in_n = rn < n
    acc = tl.zeros([TM, TN], tl.float32)
    for _ in range(0, tl.cdiv(k, TK * SPLIT)):
        xt = tl.load(px, mask=in_m[:, None], other=0.0)
        wt = tl.load(pw, mask=in_n[None, :], other=0.0)
        acc += tl.dot(xt, wt)
        px += TK * SPLIT
        pw += TK * SPLIT * ldw
    tl.atomic_add(y + rm[:, None] * ldy + rn[None, :], acc, mask=in_m[:, None] & in_n[None, :])


def skinny_mm(x, w, split=4):
    m, k = x.shape
    _, n = w.shape
    x, w = x.half().contiguous(), w.half().contiguous()
    y = torch.zeros(m, n, device=x.device, dtype=torch.float32)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64), split)
    splitk_kernel[grid](x, w, y, m, n, k, x.stride(0), w.stride(0), y.stride(0), TM=32, TN=64, TK=64, SPLIT=split)
    return y
