import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_carried_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = row < M
    carry = tl.zeros([BLOCK_M], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        mask = row_mask[:, None] & col_mask[None, :]
        x = tl.load(x_ptr + row[:, None] * N + (N - 1 - col[None, :]), mask=mask, other=0.0)
        total = carry[:, None] + tl.cumsum(x, axis=1)
        is_last = col == start + BLOCK_N - 1
        carry = tl.sum(tl.where(is_last[None, :], total, 0.0), axis=1)
        tl.store(out_ptr + row[:, None] * N + (N - 1 - col[None, :]), total, mask=mask)


@triton.jit
def out_in_chunks_0_kernel(
    x_ptr,
    partial_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511."""
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    pid_row = pid % n_row_blocks
    part = pid // n_row_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_N)
    n_3 = part * 1024 + i
    row_mask = row < M
    inside = n_3 < N
    x = tl.load(
        x_ptr + row[:, None] * N + (N - 1 - n_3[None, :]),
        mask=row_mask[:, None] & inside[None, :],
        other=0.0,
    )
    tl.store(partial_ptr + part * M + row, tl.sum(x, axis=1), mask=row_mask)


@triton.jit
def out_in_chunks_1_kernel(
    partial_ptr,
    running_ptr,
    M,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = row < M
    carry = tl.zeros([BLOCK_M], tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < n_cols
        mask = row_mask[:, None] & col_mask[None, :]
        partial = tl.load(
            partial_ptr + col[None, :].to(INDEX) * M + row[:, None],
            mask=mask,
            other=0.0,
        )
        total = carry[:, None] + tl.cumsum(partial, axis=1)
        is_last = col == start + BLOCK_N - 1
        carry = tl.sum(tl.where(is_last[None, :], total, 0.0), axis=1)
        tl.store(running_ptr + col[None, :].to(INDEX) * M + row[:, None], total, mask=mask)


@triton.jit
def out_in_chunks_2_kernel(
    running_ptr,
    x_ptr,
    out_ptr,
    N,
    M,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511."""
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    pid_row = pid % n_row_blocks
    part = pid // n_row_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_N)
    row_mask = row < M
    running = tl.load(running_ptr + (part - 1) * M + row, mask=row_mask & (part > 0), other=0.0)
    n_3 = part * 1024 + i
    inside = n_3 < N
    x_mask = row_mask[:, None] & inside[None, :]
    x = tl.load(x_ptr + row[:, None] * N + (N - 1 - n_3[None, :]), mask=x_mask, other=0.0)
    tl.store(
        out_ptr + row[:, None] * N + (N - 1 - n_3[None, :]),
        running[:, None] + tl.cumsum(x, axis=1),
        mask=x_mask,
    )


@triton.jit
def out_in_registers_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 16384."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None] * N + (N - 1 - col[None, :]), mask=mask, other=0.0)
    tl.store(out_ptr + row[:, None] * N + (N - 1 - col[None, :]), tl.cumsum(x, axis=1), mask=mask)
