import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, K, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * K + cols, mask=cols < K, other=0.0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32)))


def sums(x):
    rows, K = x.shape
    parts = triton.cdiv(K, 256)
    assert parts == 1
    x = x.contiguous()
    out = torch.empty(rows, device=x.device)
    sum_kernel[(parts, rows)](x, out, K, BLOCK=256)
    return out
