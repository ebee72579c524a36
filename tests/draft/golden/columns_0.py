import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < M
        x = tl.load(
            x_ptr + row[:, None].to(INDEX) * N + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total_acc += x
    tl.store(out_ptr + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_split_0_kernel(
    x_ptr,
    partial_out_ptr,
    M,
    N,
    rows_per_program,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 65536 and M > 512."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    part = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, M)
    col_mask = col < N
    out_acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        row = start + tl.arange(0, BLOCK_M)
        row_mask = row < end_row
        x = tl.load(
            x_ptr + row[:, None] * N + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        out_acc += x
    out = tl.sum(out_acc, axis=0)
    tl.store(partial_out_ptr + part * N + col, out, mask=col_mask)


@triton.jit
def out_split_1_kernel(
    partial_out_ptr,
    out_ptr,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 65536 and M > 512."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    out_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        partial_out = tl.load(
            partial_out_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=part_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        out_acc += partial_out
    out = tl.sum(out_acc, axis=0)
    tl.store(out_ptr + col, out, mask=col_mask)


@triton.jit
def out_in_registers_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 512."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.arange(0, BLOCK_K)
    row_mask = row < M
    col_mask = col < N
    x = tl.load(
        x_ptr + row[:, None].to(INDEX) * N + col[None, :],
        mask=row_mask[:, None] & col_mask[None, :],
        other=0.0,
    )
    tl.store(out_ptr + col, tl.sum(x, axis=0), mask=col_mask)
