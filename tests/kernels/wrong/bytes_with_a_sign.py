"""Bytes read with a sign: wrong from 128 on."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "uint8[M, N]"}
DIMS = {"M": [1, 7, 64], "N": [1, 64, 1000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.float() / 255.0


@triton.jit
def scale_kernel(x_ptr, out_ptr, N, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK).to(tl.int64)
    mask = col < N
    byte = tl.load(x_ptr + row * s0 + col * s1, mask=mask, other=0)
    tl.store(out_ptr + row * N + col, byte.to(tl.int8).to(tl.float32) / 255.0, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    if out.numel():
        scale_kernel[(M,)](x, out, N, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(N))
    return out
