import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_apart_0_kernel(x_ptr, out_sums_x_max_0_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        x_max_acc = tl.maximum(x_max_acc, x)
    x_max = tl.max(x_max_acc, axis=0)
    tl.store(out_sums_x_max_0_ptr + row, x_max)


@triton.jit
def out_apart_1_kernel(
    x_ptr,
    out_sums_x_max_0_ptr,
    out_sums_denominator_1_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    out_sums_x_max_0 = tl.load(out_sums_x_max_0_ptr + row)
    denominator_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        numerator = tl.exp(x - out_sums_x_max_0)
        denominator_acc += numerator
    denominator = tl.sum(denominator_acc, axis=0)
    tl.store(out_sums_denominator_1_ptr + row, denominator)


@triton.jit
def out_apart_2_kernel(
    x_ptr,
    out_sums_x_max_0_ptr,
    out_sums_denominator_1_ptr,
    out_sums_sum_2_ptr,
    M,
    G,
    N,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    outer = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < M
        mask = row_mask[:, None] & col_mask[None, :]
        x = tl.load(x_ptr + (row[:, None].to(INDEX) * G + outer) * N + col[None, :], mask=mask)
        out_sums_x_max_0 = tl.load(out_sums_x_max_0_ptr + row.to(INDEX) * G + outer, mask=row_mask)
        numerator = tl.exp(x - out_sums_x_max_0[:, None])
        out_sums_denominator_1 = tl.load(
            out_sums_denominator_1_ptr + row.to(INDEX) * G + outer,
            mask=row_mask,
        )
        total_acc += tl.where(row_mask[:, None], numerator / out_sums_denominator_1[:, None], 0.0)
    tl.store(out_sums_sum_2_ptr + outer * N + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_apart_3_kernel(
    out_sums_sum_2_ptr,
    out_ptr,
    M,
    n_elements,
    BLOCK: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    i_mask = i < n_elements
    out_sums_sum_2 = tl.load(out_sums_sum_2_ptr + i, mask=i_mask)
    out = out_sums_sum_2 / M
    tl.store(out_ptr + i, out, mask=i_mask)


@triton.jit
def out_in_shares_0_kernel(
    x_ptr,
    partial_out_ptr,
    M,
    G,
    N,
    rows_per_program,
    BLOCK_G: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 16384."""
    pid = tl.program_id(0).to(INDEX)
    n_group_blocks = tl.cdiv(G, BLOCK_G)
    pid_group = pid % n_group_blocks
    part = pid // n_group_blocks
    group = pid_group * BLOCK_G + tl.arange(0, BLOCK_G)
    col = tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, M)
    group_mask = group < G
    col_mask = col < N
    mask = group_mask[:, None] & col_mask[None, :]
    out = tl.zeros([BLOCK_G, BLOCK_N], tl.float32)
    for row in tl.range(first_row, end_row, num_stages=STAGES):
        x = tl.load(
            x_ptr + (row * G + group[:, None]) * N + col[None, :],
            mask=mask,
            other=-float("inf"),
        )
        x_max = tl.max(x, axis=1)
        numerator = tl.exp(x - x_max[:, None])
        denominator = tl.sum(numerator, axis=1)
        out += numerator / denominator[:, None]
    tl.store(partial_out_ptr + (part * G + group[:, None]) * N + col[None, :], out, mask=mask)


@triton.jit
def out_in_shares_1_kernel(
    partial_out_ptr,
    out_ptr,
    M,
    n_cols,
    n_parts,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 16384."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < n_cols
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        partial_out = tl.load(
            partial_out_ptr + part[:, None].to(INDEX) * n_cols + col[None, :],
            mask=part_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total_acc += partial_out
    out = tl.sum(total_acc, axis=0) / M
    tl.store(out_ptr + col, out, mask=col_mask)
