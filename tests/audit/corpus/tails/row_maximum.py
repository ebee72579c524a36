import torch
import triton
import triton.language as tl


@triton.jit
def lse(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, c < n, 0.0)
    m = x.max(axis=0)
    s = tl.sum(tl.where(c < n, tl.exp(x - m), 0.0), axis=0)
    tl.store(o_ptr + row, m)


def row_maximum(x):
    x = x.float().contiguous()
    out = torch.empty(x.shape[0], device=x.device)
    lse[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
