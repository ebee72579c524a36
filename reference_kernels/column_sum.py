"""Sum over the rows of a matrix: out[n] = sum_m x[m, n].

x is [M, N], out is [N]. One pass over x. Where the columns alone make too few programs to fill a GPU, the
rows are split among several programs, and their partial sums meet in one of two ways. column_sum, which run
calls, is two-phase: the programs store partial sums, and a second, small launch of the same kernel adds them.
The split depends on nothing but the sizes, so every run gives the same bits. column_sum_atomic adds them
atomically: no partial sums in memory, but zeros to begin with, and float32 sums whose last bits depend on the
order in which programs finish. Both add in float32 and round once, to x's dtype. On Hopper and newer the
second launch is a dependent one: its programs start while the last of the first phase end, and wait for them.

Technique: rows split among programs, joined in two phases (deterministic, overlapped by
programmatic dependent launch) or by float32 atomics.
Topics: grids, tiles, masks, reductions, pipelining and persistence.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 1000, 20_000], "N": [1, 64, 200, 1000]}

# Programs to launch: eight for each of an H200's 132 multiprocessors, which hold them all at once.
PROGRAMS = 1056
# Elements a program of two warps adds at a time.
TILE = 2048
# Up to here it counts what the L2 cache held before: a few times its size.
ONE_STAGE_BYTES = 2**28


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N] in x's dtype."""
    return x.sum(dim=0)


@triton.jit
def sum_of_share(
    x_ptr,
    cols,
    n_rows,
    n_cols,
    rows_per_split,
    x_row_stride,
    x_col_stride,
    STAGES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Adds up this program's share of rows in the columns cols: int64 [BLOCK_N]. Returns float32 [BLOCK_N].

    Each lane adds up rows BLOCK_M apart; the lanes are added once, after the loop. With two STAGES a tile is
    added while the next one is copied to shared memory. With one it comes straight to registers, and the L2
    cache is told that it leaves first: it pushes out nothing that waits to be written.
    """
    first_row = tl.program_id(1).to(tl.int64) * rows_per_split
    end_row = tl.minimum(first_row + rows_per_split, n_rows)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < end_row)[:, None] & (cols < n_cols)[None, :]
        x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
        total += tl.load(x_ptrs, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
    return tl.sum(total, axis=0)


@triton.jit
def column_sum_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    rows_per_split,
    x_row_stride,
    x_col_stride,
    STAGES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Program (i, split) adds up rows_per_split rows of the i-th BLOCK_N columns.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_splits, n_cols], contiguous. OVERLAPS is "next" where
    the kernel after this one may start before it ends, "previous" where this one has, else None.
    """
    if OVERLAPS == "next":
        tl.extra.cuda.gdc_launch_dependents()
    if OVERLAPS == "previous":
        tl.extra.cuda.gdc_wait()
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = sum_of_share(
        x_ptr, cols, n_rows, n_cols, rows_per_split, x_row_stride, x_col_stride, STAGES, BLOCK_M, BLOCK_N
    )
    tl.store(out_ptr + tl.program_id(1).to(tl.int64) * n_cols + cols, total, mask=cols < n_cols)


@triton.jit
def column_sum_atomic_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    rows_per_split,
    x_row_stride,
    x_col_stride,
    STAGES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, split) adds rows_per_split rows of the i-th BLOCK_N columns to out.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: float32 [n_cols], contiguous, zeros at first.
    """
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = sum_of_share(
        x_ptr, cols, n_rows, n_cols, rows_per_split, x_row_stride, x_col_stride, STAGES, BLOCK_M, BLOCK_N
    )
    # Nothing else is ordered by these additions, so relaxed is enough.
    tl.atomic_add(out_ptr + cols, total, mask=cols < n_cols, sem="relaxed")


def column_sum(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N], contiguous, in x's dtype: the same bits in every run."""
    n_cols = x.shape[1]
    out = torch.empty(n_cols, dtype=x.dtype, device=x.device)
    if n_cols == 0:
        return out
    BLOCK_N, n_splits, STAGES = blocks(x)
    if n_splits > 1:
        partial = torch.empty((n_splits, n_cols), dtype=torch.float32, device=x.device)
        overlap = launches_overlap(triton.runtime.driver.active.get_current_device())
        first, second = ("next", "previous") if overlap else (None, None)
        add_rows(column_sum_kernel, x, partial, n_splits, BLOCK_N, STAGES=STAGES, OVERLAPS=first, num_warps=2)
        launch = {"OVERLAPS": second, "num_warps": 8} | ({"launch_pdl": True} if overlap else {})
        # A few rows are left: narrower blocks make more programs.
        add_rows(column_sum_kernel, partial, out, 1, min(16, BLOCK_N), STAGES=2, **launch)
    else:
        add_rows(column_sum_kernel, x, out, 1, BLOCK_N, STAGES=STAGES, OVERLAPS=None, num_warps=2)
    return out


@functools.cache
def launches_overlap(device: int) -> bool:
    """Whether a kernel may start while the one before it ends; asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    return target.backend == "cuda" and target.arch >= 90


def column_sum_atomic(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N], contiguous, in x's dtype; runs may differ in the last bits."""
    n_cols = x.shape[1]
    total = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    if n_cols > 0:
        BLOCK_N, n_splits, STAGES = blocks(x)
        add_rows(column_sum_atomic_kernel, x, total, n_splits, BLOCK_N, STAGES=STAGES, num_warps=2)
    return total.to(x.dtype)


def blocks(x: torch.Tensor) -> tuple[int, int, int]:
    """Columns for each program, shares of the rows, and stages: for x [M, N].

    PROGRAMS programs, twice as many where no shared memory bounds them, or fewer of four tiles each.
    """
    n_rows, n_cols = x.shape
    STAGES = 1 if x.numel() * x.element_size() <= ONE_STAGE_BYTES else 2
    BLOCK_N = min(64, triton.next_power_of_2(n_cols))
    most_splits = PROGRAMS * 2 // STAGES // triton.cdiv(n_cols, BLOCK_N)
    n_splits = min(triton.cdiv(n_rows * BLOCK_N, 4 * TILE), most_splits)
    if n_splits == 1 and most_splits > 1:
        # Few rows, and few programs: narrower blocks make more of them.
        BLOCK_N = min(16, BLOCK_N)
    return BLOCK_N, max(1, n_splits), STAGES


def add_rows(
    kernel: triton.JITFunction,
    x: torch.Tensor,
    out: torch.Tensor,
    n_splits: int,
    BLOCK_N: int,
    **options: Any,
) -> None:
    """Launches the kernel on x [M, N], whose rows it adds up in n_splits equal shares."""
    n_rows, n_cols = x.shape
    grid = (triton.cdiv(n_cols, BLOCK_N), n_splits)
    rows_per_split = triton.cdiv(n_rows, n_splits)
    BLOCK_M = TILE // BLOCK_N
    kernel[grid](
        x, out, n_rows, n_cols, rows_per_split, *x.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, **options
    )


library = torch.library.Library("reference_kernels", "FRAGMENT")
for name, function in {"column_sum": column_sum, "column_sum_atomic": column_sum_atomic}.items():
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"reference_kernels::{name}", lambda x: x.new_empty(x.shape[1]), lib=library)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.column_sum(x)
