import torch
import triton
import triton.language as tl


@triton.jit
def _product(t, A, B, mask):
    a = tl.load(A, mask=mask, other=0.0)
    b = tl.load(B, mask=mask, other=0.0)
    return tl.dot(tl.trans(a), b, acc=t)


@triton.jit
def cov(X, OUT, rows, cols, TILE: tl.constexpr, STEP: tl.constexpr):
    left = tl.program_id(0) * TILE + tl.arange(0, TILE)
    right = tl.program_id(1) * TILE + tl.arange(0, TILE)
    t = tl.zeros((TILE, TILE), tl.float32)
    for r0 in range(0, rows, STEP):
        r = r0 + tl.arange(0, STEP)
        a = tl.load(X + r[:, None] * cols + left[None, :], mask=(r[:, None] < rows) & (left[None, :] < cols), other=0.0)
        b = tl.load(X + r[:, None] * cols + right[None, :], mask=(r[:, None] < rows) & (right[None, :] < cols), other=0.0)
        t += tl.dot(tl.trans(a), b)
    tl.store(OUT + left[:, None] * cols + right[None, :], t / rows, mask=(left[:, None] < cols) & (right[None, :] < cols))


def covariance(x):
    x = (x - x.mean(0)).float().contiguous()
    rows, cols = x.shape
    out = torch.empty(cols, cols, dtype=torch.float32, device=x.device)
    cov[(triton.cdiv(cols, 32), triton.cdiv(cols, 32))](x, out, rows, cols, TILE=32, STEP=64)
    return out
