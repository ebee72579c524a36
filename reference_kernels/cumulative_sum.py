"""Cumulative sum along rows: out[m, n] = x[m, 0] + ... + x[m, n].

x and out are [M, N], of any row length. A row of up to ONE_PASS_COLS columns is scanned in registers. A
longer one is walked block by block, its total carried on in registers: x is read once, out written once.
Where such rows are too few to fill a GPU, they are split into chunks, to be reduced, then scanned: a first
launch adds up the chunks, and in the second each chunk begins with the sum of those before it. That reads x
twice, but on all multiprocessors. No program waits for another and no atomics are used, so every run gives
the same bits. Sums are float32 and each is rounded once, to x's dtype; what is carried on is never rounded
to it.

Technique: a scan in registers, a carry from block to block, reduce-then-scan over chunks of few long rows.
Topics: tiles, grids, masks, reductions, pipelining and persistence, dynamic shapes.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 4096
# Columns that a program scans at a time in a longer row.
LONG_BLOCK = 4096
# Programs to launch for few long rows: two for each of an H200's 132 multiprocessors.
PROGRAMS = 264


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N] in x's dtype."""
    return torch.cumsum(x, dim=-1)


@triton.jit
def cumulative_sum_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program scans BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    tl.store(out_ptr + rows * n_cols + cols, tl.cumsum(x.to(tl.float32), axis=1), mask=mask)


@triton.jit
def chunk_totals_kernel(x_ptr, total_ptr, cols_per_chunk, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """Program (row, chunk) adds up cols_per_chunk columns of a row, a multiple of BLOCK_N, none out of range.

    x_ptr: [n_rows, n_cols], any strides. total_ptr: float32 [n_rows, n_chunks - 1], contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1).to(tl.int64)
    x_chunk_ptr = x_ptr + row * x_row_stride + chunk * cols_per_chunk * x_col_stride
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    lane_total = tl.zeros((BLOCK_N,), tl.float32)
    for start in tl.range(0, cols_per_chunk, BLOCK_N, num_stages=3):
        lane_total += tl.load(x_chunk_ptr + (start + lanes) * x_col_stride).to(tl.float32)
    tl.store(total_ptr + row * tl.num_programs(1) + chunk, tl.sum(lane_total, axis=0))


@triton.jit
def cumulative_sum_long_rows_kernel(
    x_ptr,
    total_ptr,
    out_ptr,
    n_cols,
    cols_per_chunk,
    x_row_stride,
    x_col_stride,
    BLOCK_N: tl.constexpr,
    CHUNKS: tl.constexpr,
):
    """Program (row, chunk) scans cols_per_chunk columns of a row, BLOCK_N at a time.

    x_ptr: [n_rows, n_cols], any strides. total_ptr: float32 [n_rows, n_chunks - 1], the sums of all chunks
    but the last, and out_ptr: [n_rows, n_cols], contiguous. CHUNKS >= n_chunks - 1.
    """
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, BLOCK_N)
    first_col = chunk.to(tl.int64) * cols_per_chunk
    end_col = tl.minimum(first_col + cols_per_chunk, n_cols)

    chunks = tl.arange(0, CHUNKS)
    totals = tl.load(total_ptr + row * (tl.num_programs(1) - 1) + chunks, mask=chunks < chunk, other=0.0)
    carry = tl.sum(totals, axis=0)
    for start in tl.range(first_col, end_col, BLOCK_N, num_stages=3):
        cols = start + lanes
        mask = cols < end_col
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_row_ptr + cols, carry + tl.cumsum(x, axis=0), mask=mask)
        carry += tl.sum(x, axis=0)


def cumulative_sum(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (x.stride(0), x.stride(1))
    if n_cols <= ONE_PASS_COLS:
        BLOCK_N = triton.next_power_of_2(n_cols)
        BLOCK_M = max(1, 2048 // BLOCK_N)
        grid = (triton.cdiv(n_rows, BLOCK_M),)
        # One warp for 2048 elements: rows of up to that many are scanned without a barrier.
        num_warps = max(1, BLOCK_N // 2048)
        cumulative_sum_kernel[grid](x, out, n_rows, n_cols, *strides, BLOCK_M, BLOCK_N, num_warps=num_warps)
        return out
    n_blocks = triton.cdiv(n_cols, LONG_BLOCK)
    cols_per_chunk = triton.cdiv(n_blocks, max(1, PROGRAMS // n_rows)) * LONG_BLOCK
    n_chunks = triton.cdiv(n_cols, cols_per_chunk)
    totals = torch.empty((n_rows, n_chunks - 1), dtype=torch.float32, device=x.device)
    if n_chunks > 1:
        chunk_totals_kernel[(n_rows, n_chunks - 1)](x, totals, cols_per_chunk, *strides, LONG_BLOCK)
    CHUNKS = triton.next_power_of_2(n_chunks)
    cumulative_sum_long_rows_kernel[(n_rows, n_chunks)](
        x, totals, out, n_cols, cols_per_chunk, *strides, LONG_BLOCK, CHUNKS, num_warps=8
    )
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("cumulative_sum(Tensor x) -> Tensor")
library.impl("cumulative_sum", cumulative_sum, "CompositeExplicitAutograd")
torch.library.register_fake("reference_kernels::cumulative_sum", lambda x: x.new_empty(x.shape), lib=library)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.cumulative_sum(x)
