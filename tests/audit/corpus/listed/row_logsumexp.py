"""out[m] = log(sum_n exp(x[m, n])), read once: every lane keeps a running maximum and a rescaled sum."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 9, 512], "N": [1, 100, 1024, 50_000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M] in float32."""
    return torch.logsumexp(x.float(), dim=-1)


@triton.jit
def finite_shift(m):
    """The number to subtract before exp: m, or 0 where m is infinite, so that inf - inf does not occur."""
    return tl.where(tl.abs(m) == float("inf"), 0.0, m)


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, n_cols, stride_row, stride_col, BLOCK: tl.constexpr):
    """One program per row. x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK).to(tl.int64)
    x_row = x_ptr + row * stride_row

    lane_max = tl.full((BLOCK,), float("-inf"), tl.float32)
    lane_sum = 0.0
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + offs
        x = tl.load(x_row + cols * stride_col, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        new_max = tl.maximum(lane_max, x)
        shift = finite_shift(new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(x - shift)
        lane_max = new_max

    row_max = tl.max(lane_max, axis=0)
    row_shift = finite_shift(row_max)
    total = tl.sum(lane_sum * tl.exp(lane_max - row_shift), axis=0)
    tl.store(out_ptr + row, tl.log(total) + row_shift)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], N >= 1, any strides. Returns [M] in float32."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows,), dtype=torch.float32, device=x.device)
    block = min(2048, triton.next_power_of_2(n_cols))
    num_warps = 8 if block == 2048 else 4
    logsumexp_kernel[(n_rows,)](
        x, out, n_cols, x.stride(0), x.stride(1), BLOCK=block, num_warps=num_warps
    )
    return out
