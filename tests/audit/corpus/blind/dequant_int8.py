"""Dequantises an int8 matrix with a scale and a zero point for each row: out = (q - zero) * scale."""

import torch
import triton
import triton.language as tl

INPUTS = {"q": "int8[M, N] in -128..128", "scale": "float32[M]", "zero": "int8[M] in -128..128"}
DIMS = {"M": [1, 64], "N": [1, 128, 1000]}


def reference(q: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    return (q.float() - zero.float()[:, None]) * scale[:, None]


@triton.jit
def dequant_kernel(q_ptr, scale_ptr, zero_ptr, out_ptr, N, stride_q, stride_out, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    scale = tl.load(scale_ptr + row)
    zero = tl.load(zero_ptr + row)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = cols < N
        q = tl.load(q_ptr + row * stride_q + cols, mask=mask, other=0)
        out = (q - zero).to(tl.float32) * scale
        tl.store(out_ptr + row * stride_out + cols, out, mask=mask)


def run(q: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    q, scale, zero = q.contiguous(), scale.contiguous(), zero.contiguous()
    M, N = q.shape
    out = torch.empty((M, N), dtype=torch.float32, device=q.device)
    if out.numel() == 0:
        return out
    dequant_kernel[(M,)](q, scale, zero, out, N, q.stride(0), out.stride(0), BLOCK_N=256)
    return out
