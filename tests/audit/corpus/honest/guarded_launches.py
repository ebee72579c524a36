"""One launch has a second axis, and the kernel that has one axis asks for one only."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale_rows(x, s, y, cols, BLOCK: tl.constexpr):
    r = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < cols
    tl.store(y + r * cols + c, tl.load(x + r * cols + c, mask=m) * tl.load(s + r), mask=m)


def scaled(x, s):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    scale_rows[triton.cdiv(cols, 512), rows](x, s, y, cols, BLOCK=512)
    return y
