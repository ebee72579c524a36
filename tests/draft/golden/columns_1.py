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
    ratio = tl.sum(total_acc, axis=0) / M
    total_acc_2 = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    total_acc_3 = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < M
        x = tl.load(
            x_ptr + row[:, None].to(INDEX) * N + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
        )
        difference = x - ratio[None, :]
        total_acc_2 += tl.where(row_mask[:, None], difference, 0.0)
        total_acc_3 += tl.where(row_mask[:, None], difference * difference, 0.0)
    ratio_2 = tl.sum(total_acc_2, axis=0) / M
    corrected_mean = ratio + tl.where(tl.abs(ratio_2) < float("inf"), ratio_2, 0.0)
    var = tl.sum(total_acc_3, axis=0) / M
    rsqrt = tl.rsqrt(var + 1e-05)
    for start in range(0, M, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < M
        mask = row_mask[:, None] & col_mask[None, :]
        x = tl.load(x_ptr + row[:, None].to(INDEX) * N + col[None, :], mask=mask)
        out = (x - corrected_mean[None, :]) * rsqrt[None, :]
        tl.store(out_ptr + row[:, None].to(INDEX) * N + col[None, :], out, mask=mask)


@triton.jit
def out_staged_0_kernel(
    x_ptr,
    partial_mean_ptr,
    partial_squares_ptr,
    M,
    N,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 65536 and M > 512."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    part = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.arange(0, BLOCK_K)
    row = part * 256 + i
    col_mask = col < N
    inside = row < M
    x = tl.load(
        x_ptr + row[:, None] * N + col[None, :],
        mask=col_mask[None, :] & inside[:, None],
        other=0.0,
    )
    count = tl.minimum(M - part * 256, 256).to(tl.float32)
    chunk_mean = tl.sum(x, axis=0) / count
    tl.store(partial_mean_ptr + part * N + col, chunk_mean, mask=col_mask)
    difference = x - chunk_mean[None, :]
    tl.store(
        partial_squares_ptr + part * N + col,
        tl.sum(tl.where(inside[:, None], difference * difference, 0.0), axis=0),
        mask=col_mask,
    )


@triton.jit
def out_staged_1_kernel(
    partial_mean_ptr,
    partial_squares_ptr,
    out_mean_0_ptr,
    out_squares_0_ptr,
    M,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 65536 and M > 512."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        partial_mean = tl.load(
            partial_mean_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=part_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        count = tl.minimum(M - part * 256, 256).to(tl.float32)
        total_acc += partial_mean * count[:, None]
    mean = tl.sum(total_acc, axis=0) / tl.cast(M, tl.float32)
    total_acc_2 = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        mask = part_mask[:, None] & col_mask[None, :]
        partial_squares = tl.load(
            partial_squares_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=mask,
        )
        count = tl.minimum(M - part * 256, 256).to(tl.float32)
        partial_mean = tl.load(
            partial_mean_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=mask,
        )
        difference = partial_mean - mean[None, :]
        total_acc_2 += tl.where(
            part_mask[:, None],
            partial_squares + count[:, None] * (difference * difference),
            0.0,
        )
    tl.store(out_mean_0_ptr + col, mean, mask=col_mask)
    tl.store(out_squares_0_ptr + col, tl.sum(total_acc_2, axis=0), mask=col_mask)


@triton.jit
def out_staged_2_kernel(
    x_ptr,
    out_mean_0_ptr,
    out_squares_0_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 65536 and M > 512."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask)
    out_mean_0 = tl.load(out_mean_0_ptr + col, mask=col_mask)
    out_squares_0 = tl.load(out_squares_0_ptr + col, mask=col_mask)
    var = out_squares_0 / M
    out = (x - out_mean_0[None, :]) * tl.rsqrt(var + 1e-05)[None, :]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


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
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None].to(INDEX) * N + col[None, :], mask=mask, other=0.0)
    ratio = tl.sum(x, axis=0) / M
    difference = x - ratio[None, :]
    ratio_2 = tl.sum(tl.where(row_mask[:, None], difference, 0.0), axis=0) / M
    corrected_mean = ratio + tl.where(tl.abs(ratio_2) < float("inf"), ratio_2, 0.0)
    var = tl.sum(tl.where(row_mask[:, None], difference * difference, 0.0), axis=0) / M
    out = (x - corrected_mean[None, :]) * tl.rsqrt(var + 1e-05)[None, :]
    tl.store(out_ptr + row[:, None].to(INDEX) * N + col[None, :], out, mask=mask)
