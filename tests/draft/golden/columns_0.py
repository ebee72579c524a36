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
        ).to(tl.float32)
        total_acc += x
    tl.store(out_ptr + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_split_0_kernel(
    x_ptr,
    partial_ptr,
    M,
    N,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 32768 and M > 1024."""
    tl.static_assert(512 % BLOCK_K == 0)
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    part = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, 512, BLOCK_K):
        i = start + tl.arange(0, BLOCK_K)
        row = part * 512 + i
        inside = row < M
        x = tl.load(
            x_ptr + row[:, None] * N + col[None, :],
            mask=col_mask[None, :] & inside[:, None],
            other=0.0,
        ).to(tl.float32)
        total_acc += x
    tl.store(partial_ptr + part * N + col, tl.sum(total_acc, axis=0), mask=col_mask)


@triton.jit
def out_split_1_kernel(
    partial_ptr,
    out_ptr,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 32768 and M > 1024."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        partial = tl.load(
            partial_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=part_mask[:, None] & col_mask[None, :],
            other=0.0,
        ).to(tl.float32)
        total_acc += partial
    tl.store(out_ptr + col, tl.sum(total_acc, axis=0), mask=col_mask)


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
    ).to(tl.float32)
    tl.store(out_ptr + col, tl.sum(x, axis=0), mask=col_mask)
