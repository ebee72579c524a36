"""A product on tensor cores whose stages need more shared memory than most GPUs have, and one that spills."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float16[M, M]"}
DIMS = {"M": [64, 512]}


@triton.jit
def product_kernel(x_ptr, out_ptr, M, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, M, BLOCK):
        steps = start + tl.arange(0, BLOCK)
        left = tl.load(x_ptr + rows[:, None] * M + steps[None, :])
        right = tl.load(x_ptr + steps[:, None] * M + cols[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out_ptr + rows[:, None] * M + cols[None, :], sums.to(tl.float16))


@triton.jit
def cramped_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.float32)
    total = tl.sum(x)
    tl.store(out_ptr + i, (x / total).to(tl.float16))


def run(x):
    out = torch.empty_like(x)
    product_kernel[(8, 8)](x, out, x.shape[0], BLOCK=64, num_stages=8)
    cramped_kernel[(1,)](x, out, BLOCK=4096, num_warps=1, maxnreg=32)
    return out
