"""Lanes are filled by tl.where after a load of zeros."""
import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, i_ptr, v_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < n
    x = tl.load(x_ptr + row * n + c, mask=inside, other=0.0).to(tl.float32)
    x = tl.where(inside, x, -float("inf"))
    best, index = tl.max(x, axis=0, return_indices=True)
    tl.store(v_ptr + row, best)
    tl.store(i_ptr + row, index)


def argmax(x):
    x = x.contiguous()
    m = x.shape[0]
    index = torch.empty(m, dtype=torch.int32, device=x.device)
    value = torch.empty(m, dtype=torch.float32, device=x.device)
    argmax_kernel[(m,)](x, index, value, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return value, index
