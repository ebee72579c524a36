"""Wrong: programs share out the blocks, and each starts with the first instead of its own."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 5, 40], "N": [1, 33, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns 2 ** x, [M, N]."""
    return torch.exp2(x)


@triton.jit
def exp2_kernel(x_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, BLOCK_N: tl.constexpr):
    """Program i takes the rows i, i + n_programs, ... of x_ptr: [n_rows, n_cols]; out_ptr is contiguous."""
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    for row in range(0, n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row.to(tl.int64) * row_stride + cols * col_stride, mask=mask, other=0.0)
        tl.store(out_ptr + row.to(tl.int64) * n_cols + cols, tl.exp2(x), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        limits = triton.runtime.driver.active.utils.get_device_properties(0)
        programs = min(n_rows, limits["multiprocessor_count"])
        exp2_kernel[(programs,)](x, out, n_rows, n_cols, *x.stride(), BLOCK_N=triton.next_power_of_2(n_cols))
    return out
