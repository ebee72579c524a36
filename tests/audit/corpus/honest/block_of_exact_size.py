"""The block is as long as the row, which is a constexpr power of two by REQUIRES."""
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 7], "N": [64, 256]}
REQUIRES = ["N == 64 or N == 128 or N == 256"]


def reference(x):
    return x - x.mean(dim=-1, keepdim=True)


@triton.jit
def center_kernel(x_ptr, y_ptr, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + c)
    tl.store(y_ptr + row * N + c, x - tl.sum(x, axis=0) / N)


def run(x):
    """x: [M, N]."""
    x = x.contiguous()
    y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    center_kernel[(x.shape[0],)](x, y, N=x.shape[1])
    return y
