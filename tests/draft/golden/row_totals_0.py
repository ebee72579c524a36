import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(
    target_ptr,
    x_ptr,
    out_log_p_0_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        x_max_acc = tl.maximum(x_max_acc, x)
    x_max = tl.max(x_max_acc, axis=0)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        shifted = x - x_max
        total_acc += tl.exp(shifted)
    target = tl.load(target_ptr + row)
    x = tl.load(x_ptr + row * N + target)
    shifted = x - x_max
    log_sum = tl.log(tl.sum(total_acc, axis=0))
    log_p = shifted - log_sum
    tl.store(out_log_p_0_ptr + row, log_p)


@triton.jit
def out_in_passes_1_kernel(out_log_p_0_ptr, out_ptr, M, BLOCK_N: tl.constexpr):
    """Taken at any size."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < M
        out_log_p_0 = tl.load(out_log_p_0_ptr + col, mask=col_mask, other=0.0)
        total_acc += out_log_p_0
    out = -(tl.sum(total_acc, axis=0) / M)
    tl.store(out_ptr, out)


@triton.jit
def out_online_0_kernel(
    target_ptr,
    x_ptr,
    out_log_p_0_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_max = -float("inf")
    x_sum = 0.0
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        new_max = tl.maximum(x_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(x - shift)
        x_sum = x_sum * rescale + tl.sum(p, axis=0)
        x_max = new_max
    target = tl.load(target_ptr + row)
    x = tl.load(x_ptr + row * N + target)
    shifted = x - x_max
    log_sum = tl.log(x_sum)
    log_p = shifted - log_sum
    tl.store(out_log_p_0_ptr + row, log_p)


@triton.jit
def out_split_0_kernel(
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
    x_sum = 0.0
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < N
        x = tl.load(
            x_ptr + row * N + col,
            mask=inside,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        new_max = tl.maximum(x_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(x - shift)
        x_sum = x_sum * rescale + tl.sum(p, axis=0)
        x_max = new_max
    tl.store(partial_max_ptr + part * M + row, x_max)
    tl.store(partial_sum_ptr + part * M + row, x_sum)


@triton.jit
def out_split_1_kernel(
    target_ptr,
    x_ptr,
    partial_max_ptr,
    partial_sum_ptr,
    out_log_p_0_ptr,
    M,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    row = tl.program_id(0).to(INDEX)
    x_max = -float("inf")
    x_sum = 0.0
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
        x_sum = x_sum * rescale + tl.sum(p * partial_sum, axis=0)
        x_max = new_max
    target = tl.load(target_ptr + row)
    x = tl.load(x_ptr + row * N + target)
    shifted = x - x_max
    log_sum = tl.log(x_sum)
    log_p = shifted - log_sum
    tl.store(out_log_p_0_ptr + row, log_p)


@triton.jit
def out_in_shares_0_kernel(
    target_ptr,
    x_ptr,
    partial_out_ptr,
    M,
    N,
    rows_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 16384."""
    part = tl.program_id(0).to(INDEX)
    col = tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, M)
    col_mask = col < N
    out_acc = tl.zeros([BLOCK_M], tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        row = start + tl.arange(0, BLOCK_M)
        row_mask = row < end_row
        target = tl.load(target_ptr + row, mask=row_mask)
        x = tl.load(x_ptr + row * N + target, mask=row_mask)
        x_2 = tl.load(
            x_ptr + row[:, None] * N + col[None, :],
            mask=row_mask[:, None] & col_mask[None, :],
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        x_max = tl.max(x_2, axis=1)
        shifted = x - x_max
        shifted_2 = x_2 - x_max[:, None]
        log_sum = tl.log(tl.sum(tl.exp(shifted_2), axis=1))
        log_p = shifted - log_sum
        out_acc += tl.where(row_mask, log_p, 0.0)
    out = tl.sum(out_acc, axis=0)
    tl.store(partial_out_ptr + part, out)


@triton.jit
def out_in_shares_1_kernel(partial_out_ptr, out_ptr, M, n_parts, BLOCK_N: tl.constexpr):
    """Taken where N <= 16384."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_out = tl.load(partial_out_ptr + part, mask=part_mask, other=0.0)
        total_acc += partial_out
    out = -(tl.sum(total_acc, axis=0) / M)
    tl.store(out_ptr, out)


@triton.jit
def out_row_by_row_0_kernel(
    target_ptr,
    x_ptr,
    partial_out_ptr,
    M,
    N,
    rows_per_program,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N > 1024 and N <= 16384."""
    part = tl.program_id(0).to(INDEX)
    col = tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, M)
    col_mask = col < N
    out = 0.0
    for row in tl.range(first_row, end_row, num_stages=STAGES):
        target = tl.load(target_ptr + row)
        x = tl.load(x_ptr + row * N + target)
        x_2 = tl.load(
            x_ptr + row * N + col,
            mask=col_mask,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        x_max = tl.max(x_2, axis=0)
        shifted = x - x_max
        shifted_2 = x_2 - x_max
        log_sum = tl.log(tl.sum(tl.exp(shifted_2), axis=0))
        log_p = shifted - log_sum
        out += log_p
    tl.store(partial_out_ptr + part, out)
