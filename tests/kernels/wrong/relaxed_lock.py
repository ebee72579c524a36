"""Wrong: programs add into the same columns under a spin lock that is released by a relaxed atomic."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 50], "N": [16, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the sum of each column, [N]."""
    return x.sum(dim=0)


@triton.jit
def column_sum_kernel(
    x_ptr, out_ptr, lock_ptr, n_rows, n_cols, row_stride, col_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """out_ptr: [n_cols] and lock_ptr: zero before the launch. BLOCK >= n_cols."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    offsets = rows[:, None] * row_stride + cols.to(tl.int64)[None, :] * col_stride
    mask = cols < n_cols
    x = tl.load(x_ptr + offsets, mask=(rows < n_rows)[:, None] & mask[None, :], other=0.0)
    total = tl.sum(x, axis=0)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    tl.store(out_ptr + cols, tl.load(out_ptr + cols, mask=mask) + total, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    lock = torch.zeros(1, dtype=torch.int32, device=x.device)
    block = triton.next_power_of_2(n_cols)
    column_sum_kernel[(triton.cdiv(n_rows, 16),)](
        x, out, lock, n_rows, n_cols, *x.stride(), ROWS=16, BLOCK=block
    )
    return out
