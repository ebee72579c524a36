"""The head dimension is a power of two by assertion, and loaded without a mask."""
import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, n_tokens, HALF: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    token = pid % n_tokens
    i = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + i).to(tl.float32)
    sin = tl.load(sin_ptr + token * HALF + i).to(tl.float32)
    a = tl.load(x_ptr + pid * 2 * HALF + i).to(tl.float32)
    b = tl.load(x_ptr + pid * 2 * HALF + HALF + i).to(tl.float32)
    tl.store(y_ptr + pid * 2 * HALF + i, (a * cos - b * sin).to(y_ptr.dtype.element_ty))
    tl.store(y_ptr + pid * 2 * HALF + HALF + i, (b * cos + a * sin).to(y_ptr.dtype.element_ty))


def rope(x, cos, sin):
    """x: [heads, tokens, d]; cos, sin: [tokens, d // 2]."""
    h, t, d = x.shape
    assert d in (32, 64, 128, 256), "head dimension"
    x = x.contiguous()
    y = torch.empty_like(x)
    rope_kernel[(h * t,)](x, cos.contiguous(), sin.contiguous(), y, t, HALF=d // 2)
    return y
