"""One program loops over everything: its grid is (1,)."""
import torch
import triton
import triton.language as tl


@triton.jit
def total_kernel(x, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for base in range(0, n, BLOCK):
        i = base + tl.arange(0, BLOCK)
        acc += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out, tl.sum(acc, axis=0))


def total(x):
    x = x.contiguous()
    out = torch.empty((), dtype=torch.float32, device=x.device)
    total_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
    return out
