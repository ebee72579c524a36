"""The compiler refuses one kernel of two, in a function that it calls."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [128, 1024]}


@triton.jit
def activation(x):
    y = x + 1.0
    return tl.relu_of(y)


@triton.jit
def activation_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, activation(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def run(x):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 256),)
    activation_kernel[grid](x, out, x.numel(), BLOCK=256)
    copy_kernel[grid](x, out, x.numel(), BLOCK=256)
    return out


def stops_after_a_launch(x):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, x.numel(), BLOCK=256)
    raise RuntimeError("not converged")


def launches_nothing(x):
    return x + 1


def launches_wrongly(x):
    copy_kernel[(1,)](x, x, x.numel(), BLOK=256)


def unaligned(x):
    odd = x[1:]
    copy_kernel[(1,)](odd, torch.empty_like(x), x.numel(), BLOCK=1024)
