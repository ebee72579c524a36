"""32-bit offsets at sizes far below 2^31."""
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [64, 1000], "N": [128, 1000]}


def reference(x):
    return x.sum(dim=-1)


@triton.jit
def sum_kernel(x_ptr, out_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + c, mask=c < N, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def run(x):
    """x: [M, N]."""
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
