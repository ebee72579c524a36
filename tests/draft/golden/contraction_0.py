import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_tiled_0_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    out_ptr,
    M,
    K,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < K
        a = tl.load(
            a_ptr + row[:, None] * K + k[None, :],
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None].to(INDEX) * N + col[None, :],
            mask=k_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision=PRECISION)
    c = tl.load(c_ptr + col, mask=col_mask)
    total_2 = total + c[None, :]
    out = 0.5 * total_2 * (1.0 + tl.erf(0.7071067811865476 * total_2))
    tl.store(
        out_ptr + row[:, None] * N + col[None, :],
        out,
        mask=row_mask[:, None] & col_mask[None, :],
    )


@triton.jit
def out_grouped_0_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    out_ptr,
    M,
    K,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    # Programs that follow each other share blocks of both operands in the cache.
    group = pid // (GROUP_M * n_col_blocks)
    group_size = tl.minimum(n_row_blocks - group * GROUP_M, GROUP_M)
    pid_row = group * GROUP_M + pid % (GROUP_M * n_col_blocks) % group_size
    pid_col = pid % (GROUP_M * n_col_blocks) // group_size
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < K
        a = tl.load(
            a_ptr + row[:, None] * K + k[None, :],
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None].to(INDEX) * N + col[None, :],
            mask=k_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision=PRECISION)
    c = tl.load(c_ptr + col, mask=col_mask)
    total_2 = total + c[None, :]
    out = 0.5 * total_2 * (1.0 + tl.erf(0.7071067811865476 * total_2))
    tl.store(
        out_ptr + row[:, None] * N + col[None, :],
        out,
        mask=row_mask[:, None] & col_mask[None, :],
    )


@triton.jit
def out_split_k_0_kernel(
    a_ptr,
    b_ptr,
    partial_ptr,
    M,
    K,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M * N <= 524288 and K > 16384."""
    tl.static_assert(4096 % BLOCK_K == 0)
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    tile = pid % (n_row_blocks * n_col_blocks)
    batch = pid // (n_row_blocks * n_col_blocks)
    # Programs that follow each other share blocks of both operands in the cache.
    group = tile // (GROUP_M * n_col_blocks)
    group_size = tl.minimum(n_row_blocks - group * GROUP_M, GROUP_M)
    pid_row = group * GROUP_M + tile % (GROUP_M * n_col_blocks) % group_size
    pid_col = tile % (GROUP_M * n_col_blocks) // group_size
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, 4096, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_2 = batch * 4096 + k
        inside = k_2 < K
        a = tl.load(
            a_ptr + row[:, None] * K + k_2[None, :],
            mask=row_mask[:, None] & inside[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + k_2[:, None] * N + col[None, :],
            mask=col_mask[None, :] & inside[:, None],
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision=PRECISION)
    tl.store(
        partial_ptr + (batch * M + row[:, None]) * N + col[None, :],
        total,
        mask=row_mask[:, None] & col_mask[None, :],
    )


@triton.jit
def out_split_k_1_kernel(
    partial_ptr,
    c_ptr,
    out_ptr,
    M,
    N,
    n_rows,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M * N <= 524288 and K > 16384."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    outer = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    total_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_rows, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < n_rows
        mask = row_mask[:, None] & col_mask[None, :]
        partial = tl.load(
            partial_ptr + (row[:, None].to(INDEX) * M + outer) * N + col[None, :],
            mask=mask,
            other=0.0,
        )
        total_acc += partial
    c = tl.load(c_ptr + col, mask=col_mask)
    total = tl.sum(total_acc, axis=0) + c
    out = 0.5 * total * (1.0 + tl.erf(0.7071067811865476 * total))
    tl.store(out_ptr + outer * N + col, out, mask=col_mask)


@triton.jit
def out_of_copies_0_kernel(
    a_ptr,
    a_padded_ptr,
    M,
    K,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where (K % 4 != 0 or N % 4 != 0) and M > 511 and N > 511 and K > 255."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(n_cols, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < n_cols
    mask = row_mask[:, None] & col_mask[None, :]
    inside = col < K
    a = tl.load(a_ptr + row[:, None] * K + col[None, :], mask=mask & inside[None, :], other=0.0)
    tl.store(a_padded_ptr + row[:, None] * n_cols + col[None, :], a, mask=mask)


@triton.jit
def out_of_copies_1_kernel(
    b_ptr,
    b_padded_ptr,
    K,
    N,
    n_cols,
    n_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where (K % 4 != 0 or N % 4 != 0) and M > 511 and N > 511 and K > 255."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(n_cols, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < n_rows
    col_mask = col < n_cols
    mask = row_mask[:, None] & col_mask[None, :]
    inside = row < K
    inside_2 = col < N
    b = tl.load(
        b_ptr + row[:, None] * N + col[None, :],
        mask=mask & (inside[:, None] & inside_2[None, :]),
        other=0.0,
    )
    tl.store(b_padded_ptr + row[:, None] * n_cols + col[None, :], b, mask=mask)


@triton.jit
def out_of_copies_2_kernel(
    a_padded_ptr,
    b_padded_ptr,
    c_ptr,
    out_ptr,
    M,
    N,
    K_2,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where (K % 4 != 0 or N % 4 != 0) and M > 511 and N > 511 and K > 255."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(n_cols, BLOCK_N)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    # Programs that follow each other share blocks of both operands in the cache.
    group = pid // (GROUP_M * n_col_blocks)
    group_size = tl.minimum(n_row_blocks - group * GROUP_M, GROUP_M)
    pid_row = group * GROUP_M + pid % (GROUP_M * n_col_blocks) % group_size
    pid_col = pid % (GROUP_M * n_col_blocks) // group_size
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < n_cols
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K_2, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < K_2
        a = tl.load(
            a_padded_ptr + row[:, None] * K_2 + k[None, :],
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        b = tl.load(
            b_padded_ptr + k[:, None].to(INDEX) * n_cols + col[None, :],
            mask=k_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision=PRECISION)
    inside = col < N
    c = tl.load(c_ptr + col, mask=col_mask & inside, other=0.0)
    total_2 = total + c[None, :]
    out = 0.5 * total_2 * (1.0 + tl.erf(0.7071067811865476 * total_2))
    tl.store(
        out_ptr + row[:, None] * N + col[None, :],
        out,
        mask=row_mask[:, None] & col_mask[None, :] & inside[None, :],
    )
