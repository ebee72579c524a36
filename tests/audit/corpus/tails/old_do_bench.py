import torch
import triton
import triton.language as tl


@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def double(x):
    y = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["B"]),)
    k[grid](x, y, x.numel(), B=256)
    return y


def bench(x):
    return triton.testing.do_bench(lambda: double(x), percentiles=(0.5, 0.2, 0.8))
