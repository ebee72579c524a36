import torch
import triton
import triton.language as tl


@triton.jit
def tanh_gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = 0.5 * x * (1.0 + tl.math.tanh(inner))
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


def gelu_tanh(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    tanh_gelu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
