import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(
    y_ptr,
    x_ptr,
    out_row_0_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    y_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    x_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        y_max_acc = tl.maximum(y_max_acc, y)
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        x_max_acc = tl.maximum(x_max_acc, x)
    y_max = tl.max(y_max_acc, axis=0)
    x_max = tl.max(x_max_acc, axis=0)
    denominator_acc = tl.zeros([BLOCK_N], tl.float32)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        numerator = tl.exp(y - y_max)
        denominator_acc += numerator
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        shifted = x - x_max
        total_acc += tl.exp(shifted)
    denominator = tl.sum(denominator_acc, axis=0)
    log_sum = tl.log(tl.sum(total_acc, axis=0))
    total_acc_2 = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask)
        numerator = tl.exp(y - y_max)
        ratio = numerator / denominator
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        shifted = x - x_max
        total_acc_2 += tl.where(col_mask, chosen - ratio * (shifted - log_sum), 0.0)
    tl.store(out_row_0_ptr + row, tl.sum(total_acc_2, axis=0))


@triton.jit
def out_in_passes_1_kernel(out_row_0_ptr, out_ptr, M, BLOCK_N: tl.constexpr):
    """Taken at any size."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < M
        out_row_0 = tl.load(out_row_0_ptr + col, mask=col_mask, other=0.0)
        total_acc += out_row_0
    tl.store(out_ptr, tl.sum(total_acc, axis=0))


@triton.jit
def out_online_0_kernel(y_ptr, x_ptr, out_row_0_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    y_max = -float("inf")
    denominator = 0.0
    x_max = -float("inf")
    x_sum = 0.0
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        new_max = tl.maximum(y_max, tl.max(y, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(y_max - shift)
        p = tl.exp(y - shift)
        denominator = denominator * rescale + tl.sum(p, axis=0)
        y_max = new_max
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        new_max_2 = tl.maximum(x_max, tl.max(x, axis=0))
        shift_2 = tl.where(new_max_2 == -float("inf"), 0.0, new_max_2)
        rescale_2 = tl.exp(x_max - shift_2)
        p_2 = tl.exp(x - shift_2)
        x_sum = x_sum * rescale_2 + tl.sum(p_2, axis=0)
        x_max = new_max_2
    log_sum = tl.log(x_sum)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask)
        numerator = tl.exp(y - y_max)
        ratio = numerator / denominator
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        shifted = x - x_max
        total_acc += tl.where(col_mask, chosen - ratio * (shifted - log_sum), 0.0)
    tl.store(out_row_0_ptr + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_staged_0_kernel(
    y_ptr,
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
    y_max = -float("inf")
    denominator = 0.0
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < N
        y = tl.load(y_ptr + row * N + col, mask=inside, other=-float("inf"))
        new_max = tl.maximum(y_max, tl.max(y, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(y_max - shift)
        p = tl.exp(y - shift)
        denominator = denominator * rescale + tl.sum(p, axis=0)
        y_max = new_max
    tl.store(partial_max_ptr + part * M + row, y_max)
    tl.store(partial_sum_ptr + part * M + row, denominator)


@triton.jit
def out_staged_1_kernel(
    partial_max_ptr,
    partial_sum_ptr,
    out_rows_y_max_0_ptr,
    out_rows_denominator_0_ptr,
    M,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    row = tl.program_id(0).to(INDEX)
    y_max = -float("inf")
    denominator = 0.0
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_max = tl.load(
            partial_max_ptr + part.to(INDEX) * M + row,
            mask=part_mask,
            other=-float("inf"),
        )
        new_max = tl.maximum(y_max, tl.max(partial_max, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(y_max - shift)
        p = tl.exp(partial_max - shift)
        partial_sum = tl.load(partial_sum_ptr + part.to(INDEX) * M + row, mask=part_mask, other=0.0)
        denominator = denominator * rescale + tl.sum(p * partial_sum, axis=0)
        y_max = new_max
    tl.store(out_rows_y_max_0_ptr + row, y_max)
    tl.store(out_rows_denominator_0_ptr + row, denominator)


@triton.jit
def out_staged_2_kernel(
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
        x = tl.load(x_ptr + row * N + col, mask=inside, other=-float("inf"))
        new_max = tl.maximum(x_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(x_max - shift)
        p = tl.exp(x - shift)
        x_sum = x_sum * rescale + tl.sum(p, axis=0)
        x_max = new_max
    tl.store(partial_max_ptr + part * M + row, x_max)
    tl.store(partial_sum_ptr + part * M + row, x_sum)


@triton.jit
def out_staged_3_kernel(
    partial_max_ptr,
    partial_sum_ptr,
    out_rows_x_max_1_ptr,
    out_rows_x_sum_1_ptr,
    M,
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
    tl.store(out_rows_x_max_1_ptr + row, x_max)
    tl.store(out_rows_x_sum_1_ptr + row, x_sum)


@triton.jit
def out_staged_4_kernel(
    y_ptr,
    out_rows_y_max_0_ptr,
    out_rows_denominator_0_ptr,
    x_ptr,
    out_rows_x_max_1_ptr,
    out_rows_x_sum_1_ptr,
    partial_ptr,
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
    out_rows_y_max_0 = tl.load(out_rows_y_max_0_ptr + row)
    out_rows_denominator_0 = tl.load(out_rows_denominator_0_ptr + row)
    out_rows_x_max_1 = tl.load(out_rows_x_max_1_ptr + row)
    out_rows_x_sum_1 = tl.load(out_rows_x_sum_1_ptr + row)
    log_sum = tl.log(out_rows_x_sum_1)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < N
        y = tl.load(y_ptr + row * N + col, mask=inside, other=0.0)
        numerator = tl.exp(y - out_rows_y_max_0)
        ratio = numerator / out_rows_denominator_0
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(x_ptr + row * N + col, mask=inside, other=0.0)
        shifted = x - out_rows_x_max_1
        total_acc += tl.where(inside, chosen - ratio * (shifted - log_sum), 0.0)
    tl.store(partial_ptr + part * M + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_staged_5_kernel(
    partial_ptr,
    out_row_0_ptr,
    M,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    row = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial = tl.load(partial_ptr + part.to(INDEX) * M + row, mask=part_mask, other=0.0)
        total_acc += partial
    tl.store(out_row_0_ptr + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_in_shares_0_kernel(
    y_ptr,
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
        mask = row_mask[:, None] & col_mask[None, :]
        y = tl.load(
            y_ptr + row[:, None] * N + col[None, :],
            mask=mask,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        y_max = tl.max(y, axis=1)
        numerator = tl.exp(y - y_max[:, None])
        denominator = tl.sum(numerator, axis=1)
        ratio = numerator / denominator[:, None]
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(
            x_ptr + row[:, None] * N + col[None, :],
            mask=mask,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        x_max = tl.max(x, axis=1)
        shifted = x - x_max[:, None]
        log_sum = tl.log(tl.sum(tl.exp(shifted), axis=1))
        out_acc += tl.where(
            row_mask,
            tl.sum(
                tl.where(col_mask[None, :], chosen - ratio * (shifted - log_sum[:, None]), 0.0),
                axis=1,
            ),
            0.0,
        )
    out = tl.sum(out_acc, axis=0)
    tl.store(partial_out_ptr + part, out)


@triton.jit
def out_in_shares_1_kernel(partial_out_ptr, out_ptr, n_parts, BLOCK_N: tl.constexpr):
    """Taken where N <= 16384."""
    out_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_out = tl.load(partial_out_ptr + part, mask=part_mask, other=0.0)
        out_acc += partial_out
    out = tl.sum(out_acc, axis=0)
    tl.store(out_ptr, out)


@triton.jit
def out_row_by_row_0_kernel(
    y_ptr,
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
        y = tl.load(
            y_ptr + row * N + col,
            mask=col_mask,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        y_max = tl.max(y, axis=0)
        numerator = tl.exp(y - y_max)
        denominator = tl.sum(numerator, axis=0)
        ratio = numerator / denominator
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(
            x_ptr + row * N + col,
            mask=col_mask,
            other=-float("inf"),
            eviction_policy="evict_first",
        )
        x_max = tl.max(x, axis=0)
        shifted = x - x_max
        log_sum = tl.log(tl.sum(tl.exp(shifted), axis=0))
        out += tl.sum(tl.where(col_mask, chosen - ratio * (shifted - log_sum), 0.0), axis=0)
    tl.store(partial_out_ptr + part, out)
