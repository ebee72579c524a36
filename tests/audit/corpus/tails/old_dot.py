import torch
import triton
import triton.language as tl


@triton.jit
def tile_mm(a_ptr, b_ptr, c_ptr, B: tl.constexpr):
    r = tl.arange(0, B)
    a = tl.load(a_ptr + r[:, None] * B + r[None, :])
    b = tl.load(b_ptr + r[:, None] * B + r[None, :])
    c = tl.dot(a, b, trans_b=True)
    tl.store(c_ptr + r[:, None] * B + r[None, :], c)


def tile(a, b):
    assert a.shape == b.shape == (64, 64) and a.dtype == torch.float16
    c = torch.empty(64, 64, device=a.device)
    tile_mm[(1,)](a.contiguous(), b.contiguous(), c, B=64)
    return c
