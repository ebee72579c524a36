import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(x_ptr, out_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        x_max_acc = tl.maximum(x_max_acc, x)
    x_max = tl.max(x_max_acc, axis=0)
    denominator_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        numerator = tl.exp(x - x_max)
        denominator_acc += numerator
    denominator = tl.sum(denominator_acc, axis=0)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        numerator = tl.exp(x - x_max)
        out = numerator / denominator
        tl.store(out_ptr + row * N + col, out, mask=col_mask)


@triton.jit
def out_online_0_kernel(x_ptr, out_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_max = -float("inf")
    denominator = 0.0
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        new_max = tl.maximum(x_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(x - shift)
        denominator = denominator * rescale + tl.sum(p, axis=0)
        x_max = new_max
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        numerator = tl.exp(x - x_max)
        out = numerator / denominator
        tl.store(out_ptr + row * N + col, out, mask=col_mask)


@triton.jit
def out_staged_0_kernel(
    x_ptr,
    partial_max_ptr,
    partial_sum_ptr,
    M,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    tl.static_assert(4096 % BLOCK_N == 0)
    pid = tl.program_id(0).to(INDEX)
    part = pid % n_parts
    row = pid // n_parts
    x_max = -float("inf")
    denominator = 0.0
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < N
        x = tl.load(x_ptr + row * N + col, mask=inside, other=-float("inf"))
        new_max = tl.maximum(x_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(x - shift)
        denominator = denominator * rescale + tl.sum(p, axis=0)
        x_max = new_max
    tl.store(partial_max_ptr + part * M + row, x_max)
    tl.store(partial_sum_ptr + part * M + row, denominator)


@triton.jit
def out_staged_1_kernel(
    partial_max_ptr,
    partial_sum_ptr,
    out_x_max_0_ptr,
    out_denominator_0_ptr,
    M,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    row = tl.program_id(0).to(INDEX)
    x_max = -float("inf")
    denominator = 0.0
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_max = tl.load(
            partial_max_ptr + part.to(INDEX) * M + row,
            mask=part_mask,
            other=-float("inf"),
        )
        new_max = tl.maximum(x_max, tl.max(partial_max, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(partial_max - shift)
        partial_sum = tl.load(partial_sum_ptr + part.to(INDEX) * M + row, mask=part_mask, other=0.0)
        denominator = denominator * rescale + tl.sum(p * partial_sum, axis=0)
        x_max = new_max
    tl.store(out_x_max_0_ptr + row, x_max)
    tl.store(out_denominator_0_ptr + row, denominator)


@triton.jit
def out_staged_2_kernel(
    x_ptr,
    out_x_max_0_ptr,
    out_denominator_0_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
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
    out_x_max_0 = tl.load(out_x_max_0_ptr + row, mask=row_mask)
    numerator = tl.exp(x - out_x_max_0[:, None])
    out_denominator_0 = tl.load(out_denominator_0_ptr + row, mask=row_mask)
    out = numerator / out_denominator_0[:, None]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


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
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask, other=-float("inf"))
    x_max = tl.max(x, axis=1)
    numerator = tl.exp(x - x_max[:, None])
    denominator = tl.sum(numerator, axis=1)
    out = numerator / denominator[:, None]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)
