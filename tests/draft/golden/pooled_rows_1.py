import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_apart_0_kernel(
    x_ptr,
    mask_ptr,
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
        mask = tl.load(mask_ptr + outer * T + row, mask=row_mask, other=False)
        total_acc += x * mask.to(tl.float32)[:, None]
    tl.store(out_sum_0_ptr + outer * D + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_apart_1_kernel(mask_ptr, out_sum_1_ptr, T, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.int64)
    for start in range(0, T, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < T
        mask = tl.load(mask_ptr + row * T + col, mask=col_mask, other=False)
        total_acc += mask.to(tl.int64)
    tl.store(out_sum_1_ptr + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_apart_2_kernel(
    out_sum_0_ptr,
    out_sum_1_ptr,
    out_sum_2_ptr,
    D,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    out_sum_1 = tl.load(out_sum_1_ptr + row)
    number = out_sum_1.to(tl.float32)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, D, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < D
        out_sum_0 = tl.load(out_sum_0_ptr + row * D + col, mask=col_mask, other=0.0)
        total_3 = out_sum_0 / number
        total_acc += total_3 * total_3
    tl.store(out_sum_2_ptr + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_apart_3_kernel(
    out_sum_0_ptr,
    out_sum_1_ptr,
    out_sum_2_ptr,
    out_ptr,
    B,
    D,
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
    out_sum_1 = tl.load(out_sum_1_ptr + row, mask=row_mask)
    total_3 = out_sum_0 / out_sum_1.to(tl.float32)[:, None]
    out_sum_2 = tl.load(out_sum_2_ptr + row, mask=row_mask)
    out = total_3 * tl.rsqrt(out_sum_2 + 1e-06)[:, None]
    tl.store(out_ptr + row[:, None] * D + col[None, :], out, mask=mask)


@triton.jit
def out_pooled_0_kernel(
    x_ptr,
    mask_ptr,
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
    mask_2 = row_mask[:, None] & col_mask[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    total_2 = tl.zeros([BLOCK_M], tl.int64)
    for k in range(T):
        x = tl.load(x_ptr + (row[:, None] * T + k) * D + col[None, :], mask=mask_2, other=0.0)
        mask = tl.load(mask_ptr + row * T + k, mask=row_mask)
        total += x * mask.to(tl.float32)[:, None]
        total_2 += mask.to(tl.int64)
    total_3 = total / total_2.to(tl.float32)[:, None]
    out = total_3 * tl.rsqrt(tl.sum(total_3 * total_3, axis=1) + 1e-06)[:, None]
    tl.store(out_ptr + row[:, None] * D + col[None, :], out, mask=mask_2)


@triton.jit
def out_in_shares_0_kernel(
    x_ptr,
    mask_ptr,
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
        mask = tl.load(mask_ptr + outer * T + row, mask=row_mask, other=False)
        out_acc += x * mask.to(tl.float32)[:, None]
    out = tl.sum(out_acc, axis=0)
    tl.store(partial_out_ptr + (part * B + outer) * D + col, out, mask=col_mask)


@triton.jit
def out_in_shares_1_kernel(
    partial_out_ptr,
    mask_ptr,
    out_ptr,
    B,
    D,
    T,
    n_parts,
    BLOCK_T: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where B <= 4096 and B * D <= 524288 and T > 16 and D <= 8192."""
    outer = tl.program_id(0).to(INDEX)
    col = tl.arange(0, BLOCK_N)
    col_mask = col < D
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for part_start in range(0, n_parts, BLOCK_K):
        part = part_start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        mask_2 = part_mask[:, None] & col_mask[None, :]
        partial_out = tl.load(
            partial_out_ptr + (part[:, None].to(INDEX) * B + outer) * D + col[None, :],
            mask=mask_2,
            other=0.0,
        )
        total_acc += partial_out
    total_acc_2 = tl.zeros([BLOCK_T], tl.int64)
    for k_start in range(0, T, BLOCK_T):
        k = k_start + tl.arange(0, BLOCK_T)
        k_mask = k < T
        mask = tl.load(mask_ptr + outer * T + k, mask=k_mask, other=False)
        total_acc_2 += mask.to(tl.int64)
    total_3 = tl.sum(total_acc, axis=0) / tl.sum(total_acc_2, axis=0).to(tl.float32)
    out = total_3 * tl.rsqrt(tl.sum(total_3 * total_3, axis=0) + 1e-06)
    tl.store(out_ptr + outer * D + col, out, mask=col_mask)
