"""Sum over the rows of a matrix: out[n] = sum_m x[m, n].

x is [M, N], out is [N]. One pass over x. Where the columns alone make too few programs to fill a GPU, the
rows are split among several programs, whose partial sums a second, small launch of the same kernel adds up.
The split depends on nothing but the sizes and no atomics are used: every run gives the same bits. Sums are
float32 and rounded once, to x's dtype.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 1000, 20_000], "N": [1, 64, 200, 1000]}

# Programs to launch: four for each of an H200's 132 multiprocessors, which hold them all at once.
PROGRAMS = 512
# Elements a program adds at a time.
TILE = 4096


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N] in x's dtype."""
    return x.sum(dim=0)


@triton.jit
def column_sum_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    rows_per_split,
    x_row_stride,
    x_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, split) adds up rows_per_split rows of the i-th BLOCK_N columns.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_splits, n_cols], contiguous.
    """
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(1).to(tl.int64)
    first_row = split * rows_per_split
    end_row = tl.minimum(first_row + rows_per_split, n_rows)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < end_row)[:, None] & (cols < n_cols)[None, :]
        offsets = rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
        total += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + split * n_cols + cols, tl.sum(total, axis=0), mask=cols < n_cols)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((1, n_cols), dtype=x.dtype, device=x.device)
    if n_cols == 0:
        return out[0]
    BLOCK_N = min(128, triton.next_power_of_2(n_cols))
    n_splits = min(triton.cdiv(n_rows * BLOCK_N, TILE), triton.cdiv(PROGRAMS, triton.cdiv(n_cols, BLOCK_N)))
    if n_splits > 1:
        partial = torch.empty((n_splits, n_cols), dtype=torch.float32, device=x.device)
        add_rows(x, partial, BLOCK_N)
        add_rows(partial, out, min(32, BLOCK_N))
    else:
        add_rows(x, out, BLOCK_N)
    return out[0]


def add_rows(x: torch.Tensor, out: torch.Tensor, BLOCK_N: int) -> None:
    """Adds up the rows of x [M, N] in n_splits equal shares, one for each row of out [n_splits, N]."""
    n_rows, n_cols = x.shape
    n_splits = out.shape[0]
    grid = (triton.cdiv(n_cols, BLOCK_N), n_splits)
    rows_per_split = triton.cdiv(n_rows, n_splits)
    BLOCK_M = TILE // BLOCK_N
    column_sum_kernel[grid](
        x, out, n_rows, n_cols, rows_per_split, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
