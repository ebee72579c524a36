"""Honest: sums with float atomics, whose order and last bits differ from run to run."""

import torch
import triton
import triton.language as tl

INPUTS = {"totals": "float32[S, N]", "x": "float32[M, N]", "segments": "int64[M] in 0..S"}
DIMS = {"M": [1, 20, 200], "N": [1, 16, 50], "S": [1, 4, 9]}
REQUIRES = ["S > 0"]


def reference(totals: torch.Tensor, x: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """totals: [S, N]; x: [M, N]; segments: int64 [M]. Returns totals plus x's rows by segment, [S, N]."""
    return totals.index_add(0, segments, x)


@triton.jit
def segment_sum_kernel(
    x_ptr,
    segments_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_stride_m,
    x_stride_n,
    segments_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) adds one BLOCK_M x BLOCK_N tile of x into out_ptr: [n_segments, n_cols], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    segments = tl.load(segments_ptr + rows * segments_stride, mask=rows < n_rows, other=0)
    x = tl.load(x_ptr + rows[:, None] * x_stride_m + cols[None, :] * x_stride_n, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + segments[:, None] * n_cols + cols[None, :], x, mask=mask, sem="relaxed")


def run(totals: torch.Tensor, x: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = totals.clone(memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 16, 32
    grid = (triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N))
    segment_sum_kernel[grid](
        x, segments, out, n_rows, n_cols, *x.stride(), segments.stride(0), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return out
