import torch
import triton
from triton import language as tl


@triton.jit
def bmm(lhs, rhs, res, rows, cols, inner, lb, lm, rb, rk, ob, om, P: tl.constexpr, Q: tl.constexpr, R: tl.constexpr):
    b = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * P + tl.arange(0, P)
    j = tl.program_id(1) * Q + tl.arange(0, Q)
    total = tl.zeros((P, Q), tl.float32)
    for k0 in range(0, inner, R):
        kk = k0 + tl.arange(0, R)
        left = tl.load(lhs + b * lb + i[:, None] * lm + kk[None, :], mask=(i[:, None] < rows) & (kk[None, :] < inner), other=0.0)
        right = tl.load(rhs + b * rb + kk[:, None] * rk + j[None, :], mask=(kk[:, None] < inner) & (j[None, :] < cols), other=0.0)
        total += tl.dot(left, right)
    tl.store(res + b * ob + i[:, None] * om + j[None, :], total.to(tl.bfloat16))


def batched(lhs, rhs):
    n, rows, inner = lhs.shape
    cols = rhs.shape[2]
    lhs = lhs.to(torch.bfloat16).contiguous()
    rhs = rhs.to(torch.bfloat16).contiguous()
    res = torch.empty(n, rows, cols, dtype=torch.bfloat16, device=lhs.device)
    grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32), n)
    bmm[grid](lhs, rhs, res, rows, cols, inner, *lhs.stride()[:2], *rhs.stride()[:2], *res.stride()[:2], P=32, Q=32, R=32)
    return res
