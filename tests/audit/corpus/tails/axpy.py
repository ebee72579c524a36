"""y = alpha * x + y."""

import torch
import triton
import triton.language as tl


@triton.jit
def axpy_kernel(x_ptr, y_ptr, out_ptr, alpha, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + idx)
    y = tl.load(y_ptr + idx)
    tl.store(out_ptr + idx, alpha * x + y)


def axpy(alpha, x, y):
    out = torch.empty_like(x)
    n = x.numel()
    axpy_kernel[(triton.cdiv(n, 1024),)](x, y, out, alpha, BLOCK=1024)
    return out


if __name__ == "__main__":
    x = torch.randn(98432, device="cuda")
    y = torch.randn(98432, device="cuda")
    torch.testing.assert_close(axpy(2.0, x, y), 2.0 * x + y)
