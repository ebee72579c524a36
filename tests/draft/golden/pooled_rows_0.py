import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_apart_0_kernel(
    x_ptr,
    out_sum_0_ptr,
    T,
    D,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(D, BLOCK_N)
    pid_col = pid % n_col_blocks
    outer = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < D
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, T, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < T
        x = tl.load(
            x_ptr + (outer * T + row[:, None]) * D + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total_acc += x
    tl.store(out_sum_0_ptr + outer * D + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_apart_1_kernel(
    out_sum_0_ptr,
    out_mean_max_1_ptr,
    D,
    T,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    mean_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, D, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < D
        out_sum_0 = tl.load(out_sum_0_ptr + row * D + col, mask=col_mask, other=-float("inf"))
        mean_max_acc = tl.maximum(mean_max_acc, out_sum_0 / T)
    mean_max = tl.max(mean_max_acc, axis=0)
    tl.store(out_mean_max_1_ptr + row, mean_max)


@triton.jit
def out_apart_2_kernel(
    out_sum_0_ptr,
    out_mean_max_1_ptr,
    out_denominator_2_ptr,
    D,
    T,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    out_mean_max_1 = tl.load(out_mean_max_1_ptr + row)
    denominator_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, D, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < D
        out_sum_0 = tl.load(out_sum_0_ptr + row * D + col, mask=col_mask, other=-float("inf"))
        numerator = tl.exp(out_sum_0 / T - out_mean_max_1)
        denominator_acc += numerator
    denominator = tl.sum(denominator_acc, axis=0)
    tl.store(out_denominator_2_ptr + row, denominator)


@triton.jit
def out_apart_3_kernel(
    out_sum_0_ptr,
    out_mean_max_1_ptr,
    out_denominator_2_ptr,
    out_ptr,
    B,
    D,
    T,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(D, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < B
    col_mask = col < D
    mask = row_mask[:, None] & col_mask[None, :]
    out_sum_0 = tl.load(out_sum_0_ptr + row[:, None] * D + col[None, :], mask=mask)
    out_mean_max_1 = tl.load(out_mean_max_1_ptr + row, mask=row_mask)
    numerator = tl.exp(out_sum_0 / T - out_mean_max_1[:, None])
    out_denominator_2 = tl.load(out_denominator_2_ptr + row, mask=row_mask)
    out = numerator / out_denominator_2[:, None]
    tl.store(out_ptr + row[:, None] * D + col[None, :], out, mask=mask)


@triton.jit
def out_pooled_0_kernel(
    x_ptr,
    out_ptr,
    B,
    T,
    D,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where D <= 8192."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    row_mask = row < B
    col_mask = col < D
    mask = row_mask[:, None] & col_mask[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(T):
        x = tl.load(x_ptr + (row[:, None] * T + k) * D + col[None, :], mask=mask)
        total += x
    ratio = total / T
    mean_max = tl.max(tl.where(col_mask[None, :], ratio, -float("inf")), axis=1)
    numerator = tl.exp(ratio - mean_max[:, None])
    denominator = tl.sum(tl.where(col_mask[None, :], numerator, 0.0), axis=1)
    out = numerator / denominator[:, None]
    tl.store(out_ptr + row[:, None] * D + col[None, :], out, mask=mask)


@triton.jit
def out_in_shares_0_kernel(
    x_ptr,
    partial_out_ptr,
    B,
    T,
    D,
    n_parts,
    rows_per_program,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where B <= 4096 and B * D <= 524288 and T > 16 and D <= 8192."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(D, BLOCK_N)
    pid_col = pid % n_col_blocks
    part = pid // n_col_blocks % n_parts
    outer = pid // n_col_blocks // n_parts
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, T)
    col_mask = col < D
    out_acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        row = start + tl.arange(0, BLOCK_M)
        row_mask = row < end_row
        x = tl.load(
            x_ptr + (outer * T + row[:, None]) * D + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        out_acc += x
    out = tl.sum(out_acc, axis=0)
    tl.store(partial_out_ptr + (part * B + outer) * D + col, out, mask=col_mask)


@triton.jit
def out_in_shares_1_kernel(
    partial_out_ptr,
    out_ptr,
    B,
    D,
    T,
    n_parts,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where B <= 4096 and B * D <= 524288 and T > 16 and D <= 8192."""
    outer = tl.program_id(0).to(INDEX)
    col = tl.arange(0, BLOCK_N)
    col_mask = col < D
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        mask = part_mask[:, None] & col_mask[None, :]
        partial_out = tl.load(
            partial_out_ptr + (part[:, None].to(INDEX) * B + outer) * D + col[None, :],
            mask=mask,
            other=0.0,
        )
        total_acc += partial_out
    ratio = tl.sum(total_acc, axis=0) / T
    mean_max = tl.max(tl.where(col_mask, ratio, -float("inf")), axis=0)
    numerator = tl.exp(ratio - mean_max)
    denominator = tl.sum(tl.where(col_mask, numerator, 0.0), axis=0)
    out = numerator / denominator
    tl.store(out_ptr + outer * D + col, out, mask=col_mask)
