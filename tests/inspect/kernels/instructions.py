"""Kernels whose instructions, turns and bytes are known."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INPUTS = {"x": "float32[M, N]", "index": "int64[K] in 0..M"}
DIMS = {"M": 8192, "N": 4096, "K": 16}


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def exp_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at)))


@triton.jit
def softcap_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    greatest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        x = tl.where(cols < n_cols, 30.0 * libdevice.tanh(x / 30.0), -float("inf"))
        new = tl.maximum(greatest, tl.max(x, 0))
        total = total * tl.exp(greatest - new) + tl.sum(tl.exp(x - new), 0)
        greatest = new
    tl.store(out_ptr + row, greatest + tl.log(total))


@triton.jit
def triangle_kernel(x_ptr, out_ptr, n_cols):
    row = tl.program_id(0)
    cols = tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    for n in range(row + 1):
        total += tl.load(x_ptr + n * n_cols + cols)
    tl.store(out_ptr + row * n_cols + cols, total)


@triton.jit
def until_kernel(x_ptr, out_ptr):
    cols = tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    while tl.max(total, 0) < 100.0:
        total += tl.load(x_ptr + cols)
    tl.store(out_ptr + cols, total)


@triton.jit
def lookup_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    tl.store(out_ptr + row * N + cols, tl.load(x_ptr + tl.load(index_ptr + row) * N + cols))


@triton.jit
def long_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in tl.static_range(24):
        x = libdevice.tanh(x)
    tl.store(out_ptr + at, x)


def copies(x, index):
    out = torch.empty_like(x)
    copy_kernel[(x.numel() // 1024,)](x, out, BLOCK=1024)
    return out


def exponentials(x, index):
    out = torch.empty_like(x)
    exp_kernel[(x.numel() // 1024,)](x, out, BLOCK=1024)
    return out


def softcapped(x, index):
    out = x.new_empty(x.shape[0])
    softcap_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out


def triangle(x, index):
    out = torch.empty_like(x)
    triangle_kernel[(32,)](x, out, x.shape[1])
    return out


def until(x, index):
    out = torch.empty_like(x)
    until_kernel[(1,)](x, out)
    return out


def looked_up(x, index):
    out = x.new_empty(index.shape[0], x.shape[1])
    lookup_kernel[(index.shape[0],)](x, index, out, N=x.shape[1])
    return out


def long(x, index):
    out = torch.empty_like(x)
    long_kernel[(1,)](x, out, BLOCK=1024)
    return out


def reference(x, index):
    return x
