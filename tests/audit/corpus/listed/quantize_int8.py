"""Symmetric int8 quantisation of a tensor with one scale: q = round(x / scale), scale = max|x| / 127."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

BLOCK = 4096
MIN_AMAX = 1e-8


class QuantizedTensor(NamedTuple):
    values: torch.Tensor  # int8, the shape of the original
    scale: torch.Tensor  # float32, one element


@triton.jit
def amax_kernel(x_ptr, partial_ptr, n, SIZE: tl.constexpr):
    """partial[i] = the largest absolute value of block i."""
    pid = tl.program_id(0)
    offs = pid.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    tl.store(partial_ptr + pid, tl.max(tl.abs(x), axis=0))


@triton.jit
def quantize_kernel(x_ptr, q_ptr, n, inv_scale, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    q = tl.floor(x * inv_scale + 0.5)
    q = tl.minimum(tl.maximum(q, -127.0), 127.0)
    tl.store(q_ptr + offs, q.to(tl.int8), mask=mask)


@triton.jit
def dequantize_kernel(q_ptr, scale_ptr, x_ptr, n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    scale = tl.load(scale_ptr)
    q = tl.load(q_ptr + offs, mask=mask, other=0).to(tl.float32)
    tl.store(x_ptr + offs, q * scale, mask=mask)


def quantize(x: torch.Tensor) -> QuantizedTensor:
    """Quantises the activations of a layer; called in every forward pass in front of an int8 matmul."""
    x = x.contiguous()
    n = x.numel()
    if n == 0:
        raise ValueError("cannot quantise an empty tensor")
    n_blocks = triton.cdiv(n, BLOCK)
    partial = torch.empty(n_blocks, dtype=torch.float32, device=x.device)
    amax_kernel[(n_blocks,)](x, partial, n, SIZE=BLOCK, num_warps=8)

    amax = max(partial.max().item(), MIN_AMAX)
    values = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    quantize_kernel[(n_blocks,)](x, values, n, 127.0 / amax, SIZE=BLOCK, num_warps=8)
    scale = torch.full((1,), amax / 127.0, dtype=torch.float32, device=x.device)
    return QuantizedTensor(values, scale)


def dequantize(q: QuantizedTensor, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    values = q.values.contiguous()
    out = torch.empty(values.shape, dtype=dtype, device=values.device)
    n = values.numel()
    dequantize_kernel[(triton.cdiv(n, BLOCK),)](values, q.scale, out, n, SIZE=BLOCK, num_warps=8)
    return out
