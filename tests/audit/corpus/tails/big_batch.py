import torch
import triton
import triton.language as tl

INPUTS = {"x": "bfloat16[B, T, D]", "shift": "bfloat16[D]"}
DIMS = {"B": [1, 64], "T": [17, 16384], "D": [100, 4096]}


def reference(x, shift):
    return x + shift


@triton.jit
def shift_kernel(x_ptr, shift_ptr, out_ptr, T, D, stride_b, stride_t, BLOCK_D: tl.constexpr):
    t = tl.program_id(0)
    b = tl.program_id(1)
    d = tl.arange(0, BLOCK_D)
    m = d < D
    off = b * stride_b + t * stride_t + d
    x = tl.load(x_ptr + off, mask=m)
    s = tl.load(shift_ptr + d, mask=m)
    tl.store(out_ptr + off, x + s, mask=m)


def run(x, shift):
    x = x.contiguous()
    B, T, D = x.shape
    out = torch.empty((B, T, D), device=x.device, dtype=x.dtype)
    shift_kernel[(T, B)](x, shift, out, T, D, x.stride(0), x.stride(1), BLOCK_D=triton.next_power_of_2(D))
    return out
