import torch
import triton
import triton.language as tl


from project import pointwise, tuned


@pointwise(promotion="default")
@triton.jit
def square(x):
    return x * x


@tuned(key=["rows"])
@triton.jit
def shift_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) + tl.program_id(1)) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def squared(x):
    out = torch.empty_like(x)
    shift_kernel[(8,)](square(x), out, level=3)
    return out
