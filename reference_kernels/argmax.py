"""Index of each row's maximum: out[m] = the smallest n with x[m, n] = max_n x[m, n].

x is [M, N] with 1 <= N <= 2**30, out is int64 [M]. One pass over x. A row of up to ONE_PASS_COLS columns
stays in registers. In a longer row each lane remembers its largest vector of neighbouring columns, by its
first column alone, and the winner's vector is looked up once more: an element costs one comparison. Where
such rows are too few to fill a GPU, each is split among several programs, and a small second launch compares
what these found. As in PyTorch, NaN counts as larger than everything: a row that holds NaN gives the index of
its first NaN.

Technique: one comparison an element, indices kept for whole vectors, long rows split among programs.
Topics: tiles, grids, masks, reductions, dynamic shapes.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}
REQUIRES = ["N >= 1"]

ONE_PASS_COLS = 8192
# Programs to launch for long rows: about four for each of an H200's 132 multiprocessors.
PROGRAMS = 512


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns int64 [M]."""
    return torch.argmax(x, dim=-1)


@triton.jit
def larger(a, b):
    """The larger of two numbers, NaN if one of them is NaN: tl.max would drop it."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def first_of_largest(x, cols, n_cols, axis: tl.constexpr):
    """The smallest of cols, which broadcasts to x's shape, where x is largest along the axis, or is NaN."""
    largest = tl.reduce(x, axis, larger, keep_dims=True)
    # NaN equals nothing, so one of both holds in a row, never the other.
    is_largest = (x == largest) | (x != x)
    return tl.min(tl.where(is_largest, cols, n_cols), axis=axis)


@triton.jit
def argmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program searches BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: int64 [n_rows], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows)[:, None] & (cols < n_cols)
    offsets = rows[:, None] * x_row_stride + cols.to(tl.int64) * x_col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"), eviction_policy="evict_first")
    tl.store(out_ptr + rows, first_of_largest(x.to(tl.float32), cols, n_cols, axis=1), mask=rows < n_rows)


@triton.jit
def argmax_long_rows_kernel(
    x_ptr,
    out_ptr,
    n_cols,
    cols_per_split,
    x_row_stride,
    x_col_stride,
    LANES: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Program (row, split) searches cols_per_split columns of a row, LANES * VECTOR at a time.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: int64 [n_rows, n_splits], contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    first_col = split * cols_per_split
    end_col = tl.minimum(first_col + cols_per_split, n_cols)
    x_row_ptr = x_ptr + row * x_row_stride
    vector = tl.arange(0, VECTOR)

    # Of equals a lane keeps the first, since only a larger one replaces it. The next blocks are copied to
    # shared memory meanwhile.
    lane_largest = tl.full((LANES,), -float("inf"), tl.float32)
    lane_start = first_col + tl.arange(0, LANES) * VECTOR
    for block_start in tl.range(first_col, end_col, LANES * VECTOR, num_stages=3):
        start = block_start + tl.arange(0, LANES) * VECTOR
        cols = start[:, None] + vector[None, :]
        x = tl.load(x_row_ptr + cols.to(tl.int64) * x_col_stride, mask=cols < end_col, other=-float("inf"))
        largest = tl.reduce(x.to(tl.float32), 1, larger)
        is_larger = (largest > lane_largest) | ((largest != largest) & (lane_largest == lane_largest))
        lane_largest = tl.where(is_larger, largest, lane_largest)
        lane_start = tl.where(is_larger, start, lane_start)

    cols = first_of_largest(lane_largest, lane_start, n_cols, axis=0) + vector
    x = tl.load(x_row_ptr + cols.to(tl.int64) * x_col_stride, mask=cols < end_col, other=-float("inf"))
    index = first_of_largest(x.to(tl.float32), cols, n_cols, axis=0)
    tl.store(out_ptr + row * tl.num_programs(1) + split, index)


@triton.jit
def argmax_of_splits_kernel(
    x_ptr, found_ptr, out_ptr, n_cols, n_splits, x_row_stride, x_col_stride, BLOCK_S: tl.constexpr
):
    """One program compares what was found in the splits of one row; BLOCK_S >= n_splits.

    x_ptr: [n_rows, n_cols], any strides. found_ptr: int64 [n_rows, n_splits], out_ptr: int64 [n_rows], both
    contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    splits = tl.arange(0, BLOCK_S)
    cols = tl.load(found_ptr + row * n_splits + splits, mask=splits < n_splits, other=n_cols)
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=cols < n_cols, other=-float("inf"))
    tl.store(out_ptr + row, first_of_largest(x.to(tl.float32), cols, n_cols, axis=0))


def argmax(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns int64 [M], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.int64, device=x.device)
    if n_rows == 0:
        return out
    strides = (x.stride(0), x.stride(1))
    if n_cols <= ONE_PASS_COLS:
        BLOCK_N = triton.next_power_of_2(n_cols)
        BLOCK_M = max(1, 1024 // BLOCK_N)
        grid = (triton.cdiv(n_rows, BLOCK_M),)
        # One warp for 1024 elements: rows of up to that many are searched without a barrier.
        num_warps = max(1, BLOCK_N // 1024)
        argmax_kernel[grid](x, out, n_rows, n_cols, *strides, BLOCK_M, BLOCK_N, num_warps=num_warps)
        return out
    # A vector is one access of 16 bytes.
    VECTOR = 16 // x.element_size()
    LANES = 1024
    n_splits = max(1, min(triton.cdiv(n_cols, LANES * VECTOR), PROGRAMS // n_rows))
    cols_per_split = triton.cdiv(triton.cdiv(n_cols, n_splits), LANES * VECTOR) * LANES * VECTOR
    n_splits = triton.cdiv(n_cols, cols_per_split)
    found = out if n_splits == 1 else torch.empty((n_rows, n_splits), dtype=torch.int64, device=x.device)
    argmax_long_rows_kernel[(n_rows, n_splits)](x, found, n_cols, cols_per_split, *strides, LANES, VECTOR)
    if n_splits > 1:
        BLOCK_S = triton.next_power_of_2(n_splits)
        argmax_of_splits_kernel[(n_rows,)](
            x, found, out, n_cols, n_splits, *strides, BLOCK_S=BLOCK_S, num_warps=1
        )
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("argmax(Tensor x) -> Tensor")
library.impl("argmax", argmax, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::argmax", lambda x: x.new_empty(x.shape[:1], dtype=torch.int64), lib=library
)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns int64 [M], contiguous."""
    return torch.ops.reference_kernels.argmax(x)
