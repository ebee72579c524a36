"""Rotates each row through a workspace, with a barrier before it is read back."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(x_ptr, work_ptr, y_ptr, N, shift, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    lanes = tl.arange(0, BLOCK)
    mask = lanes < N
    tl.store(work_ptr + row + lanes, 2.0 * tl.load(x_ptr + row + lanes, mask=mask), mask=mask)
    tl.debug_barrier()
    y = tl.load(work_ptr + row + (lanes + shift) % N, mask=mask)
    tl.store(y_ptr + row + lanes, y, mask=mask)


def rotate(x: torch.Tensor, shift: int) -> torch.Tensor:
    x = x.contiguous()
    work, y = torch.empty_like(x), torch.empty_like(x)
    if x.numel() == 0:
        return y
    M, N = x.shape
    rotate_kernel[(M,)](x, work, y, N, shift % N, BLOCK=triton.next_power_of_2(N))
    return y
