import torch
import triton
import triton.language as tl


@triton.jit
def asinh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    y = tl.libdevice.asinh(x)
    tl.store(y_ptr + offs, y, mask=offs < n)


def asinh(x):
    y = torch.empty_like(x)
    asinh_kernel[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512)
    return y
