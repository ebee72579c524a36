import torch
import triton
import triton.language as tl
from triton.language.math import fast_expf, pow


@triton.jit
def mish_like(x_ptr, y_ptr, p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.store(y_ptr + i, pow(fast_expf(x), p), mask=i < n)


def exp_power(x, p):
    y = torch.empty_like(x)
    mish_like[(triton.cdiv(x.numel(), 1024),)](x, y, p, x.numel(), BLOCK=1024)
    return y
