"""out[i, j] = a[i] + b[j]."""

import torch
import triton
import triton.language as tl


@triton.jit
def outer_sum_kernel(a_ptr, b_ptr, out_ptr, n_a, n_b, out_stride, TILE_A: tl.constexpr, TILE_B: tl.constexpr):
    pid_a = tl.program_id(axis=1)
    pid_b = tl.program_id(axis=0)
    i = pid_a * TILE_A + tl.arange(0, TILE_A)
    j = pid_b * TILE_B + tl.arange(0, TILE_B)
    a = tl.load(a_ptr + i, mask=i < n_a, other=0.0)
    b = tl.load(b_ptr + j, mask=j < n_b, other=0.0)
    where = out_ptr + i[:, None].to(tl.int64) * out_stride + j[None, :]
    tl.store(where, a[:, None] + b[None, :], mask=(i[:, None] < n_a) & (j[None, :] < n_b))


def outer_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty((a.numel(), b.numel()), dtype=a.dtype, device=a.device)
    n_a, n_b = a.numel(), b.numel()
    if n_a == 0 or n_b == 0:
        return out
    grid = (triton.cdiv(n_a, 32), triton.cdiv(n_b, 128))
    outer_sum_kernel[grid](a, b, out, n_a, n_b, out.stride(0), TILE_A=32, TILE_B=128)
    return out
