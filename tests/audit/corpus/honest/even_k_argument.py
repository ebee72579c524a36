"""EVEN_K is given at the launch as K % BK == 0."""
import torch
import triton
import triton.language as tl


@triton.jit
def gemv(w, x, y, K, BK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BK,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        if EVEN:
            acc += tl.load(w + row * K + k) * tl.load(x + k)
        else:
            acc += tl.load(w + row * K + k, mask=k < K, other=0.0) * tl.load(x + k, mask=k < K, other=0.0)
    tl.store(y + row, tl.sum(acc, axis=0))


def run_gemv(w, x):
    w, x = w.float().contiguous(), x.float().contiguous()
    y = torch.empty(w.shape[0], dtype=torch.float32, device=w.device)
    K = w.shape[1]
    BK = 512
    gemv[(w.shape[0],)](w, x, y, K, BK=BK, EVEN=K % BK == 0)
    return y
