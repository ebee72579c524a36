import torch
import triton
import triton.language as tl


@triton.jit
def negate_kernel(x_ptr, out_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, -tl.load(x_ptr + offsets, mask=mask), mask=mask)


def negate(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    rows, cols = out.shape
    n = rows * cols
    negate_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK=512)
    return out
