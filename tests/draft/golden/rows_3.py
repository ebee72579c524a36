import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(
    x_ptr,
    weight_ptr,
    time_ptr,
    out_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for channel in range(4):
        for start in range(0, N, BLOCK_N):
            col = start + tl.arange(0, BLOCK_N)
            col_mask = col < N
            x = tl.load(x_ptr + (row * 4 + channel) * N + col, mask=col_mask, other=0.0)
            total_acc += x
    mean = tl.sum(total_acc, axis=0) / (4 * N)
    total_acc_2 = tl.zeros([BLOCK_N], tl.float32)
    for channel in range(4):
        for start in range(0, N, BLOCK_N):
            col = start + tl.arange(0, BLOCK_N)
            col_mask = col < N
            x = tl.load(x_ptr + (row * 4 + channel) * N + col, mask=col_mask)
            centered = x - mean
            total_acc_2 += tl.where(col_mask, centered * centered, 0.0)
    var = tl.sum(total_acc_2, axis=0) / (4 * N)
    rstd = tl.rsqrt(var + 1e-05)
    n_outer = row % 4
    for channel in range(4):
        weight = tl.load(weight_ptr + n_outer * 4 + channel)
        time = tl.load(time_ptr + row * 4 + channel)
        sigmoid = tl.sigmoid(time)
        for start in range(0, N, BLOCK_N):
            col = start + tl.arange(0, BLOCK_N)
            col_mask = col < N
            x = tl.load(x_ptr + (row * 4 + channel) * N + col, mask=col_mask)
            centered = x - mean
            normed = centered * rstd * weight
            out = normed * sigmoid
            tl.store(out_ptr + (row * 4 + channel) * N + col, out, mask=col_mask)


@triton.jit
def out_online_0_kernel(
    x_ptr,
    weight_ptr,
    time_ptr,
    out_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    x_count = 0.0
    mean = 0.0
    x_squares = 0.0
    for channel in range(4):
        for start in range(0, N, BLOCK_N):
            col = start + tl.arange(0, BLOCK_N)
            col_mask = col < N
            x = tl.load(x_ptr + (row * 4 + channel) * N + col, mask=col_mask, other=0.0)
            tile_n = tl.minimum(BLOCK_N, N - start)
            tile_mean = tl.sum(x, axis=0) / tile_n
            deviation = x - tile_mean
            delta = tile_mean - mean
            total = x_count + tile_n
            share = tile_n / total
            total_2 = (
                tl.sum(tl.where(col_mask, deviation * deviation, 0.0), axis=0)
                + (delta * delta * x_count * share)
            )
            x_squares = x_squares + total_2
            mean = mean + delta * share
            x_count = total
    var = x_squares / (4 * N)
    rstd = tl.rsqrt(var + 1e-05)
    n_outer = row % 4
    for channel in range(4):
        weight = tl.load(weight_ptr + n_outer * 4 + channel)
        time = tl.load(time_ptr + row * 4 + channel)
        sigmoid = tl.sigmoid(time)
        for start in range(0, N, BLOCK_N):
            col = start + tl.arange(0, BLOCK_N)
            col_mask = col < N
            x = tl.load(x_ptr + (row * 4 + channel) * N + col, mask=col_mask)
            centered = x - mean
            normed = centered * rstd * weight
            out = normed * sigmoid
            tl.store(out_ptr + (row * 4 + channel) * N + col, out, mask=col_mask)


@triton.jit
def out_staged_0_kernel(
    x_ptr,
    partial_mean_ptr,
    partial_squares_ptr,
    N,
    n_parts,
    n_rows,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where 4 * B <= 511 and 4 * N > 32768."""
    pid = tl.program_id(0).to(INDEX)
    part = pid % n_parts
    row = pid // n_parts
    i = tl.arange(0, BLOCK_N)
    col = part * 4096 + i
    inside = col < 4 * N
    x = tl.load(x_ptr + row * 4 * N + col, mask=inside, other=0.0)
    count = tl.minimum(4 * N - part * 4096, 4096).to(tl.float32)
    chunk_mean = tl.sum(x, axis=0) / count
    tl.store(partial_mean_ptr + part * n_rows + row, chunk_mean)
    difference = x - chunk_mean
    tl.store(
        partial_squares_ptr + part * n_rows + row,
        tl.sum(tl.where(inside, difference * difference, 0.0), axis=0),
    )


@triton.jit
def out_staged_1_kernel(
    partial_mean_ptr,
    partial_squares_ptr,
    out_mean_0_ptr,
    out_squares_0_ptr,
    N,
    n_parts,
    n_rows,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where 4 * B <= 511 and 4 * N > 32768."""
    row = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_mean = tl.load(
            partial_mean_ptr + part.to(INDEX) * n_rows + row,
            mask=part_mask,
            other=0.0,
        )
        count = tl.minimum(4 * N - part * 4096, 4096).to(tl.float32)
        total_acc += partial_mean * count
    mean = tl.sum(total_acc, axis=0) / tl.cast(4 * N, tl.float32)
    total_acc_2 = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial_squares = tl.load(
            partial_squares_ptr + part.to(INDEX) * n_rows + row,
            mask=part_mask,
        )
        count = tl.minimum(4 * N - part * 4096, 4096).to(tl.float32)
        partial_mean = tl.load(partial_mean_ptr + part.to(INDEX) * n_rows + row, mask=part_mask)
        difference = partial_mean - mean
        total_acc_2 += tl.where(part_mask, partial_squares + count * (difference * difference), 0.0)
    tl.store(out_mean_0_ptr + row, mean)
    tl.store(out_squares_0_ptr + row, tl.sum(total_acc_2, axis=0))


@triton.jit
def out_staged_2_kernel(
    x_ptr,
    out_mean_0_ptr,
    out_squares_0_ptr,
    weight_ptr,
    time_ptr,
    out_ptr,
    N,
    n_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where 4 * B <= 511 and 4 * N > 32768."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < n_rows
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask)
    out_mean_0 = tl.load(out_mean_0_ptr + row // 4, mask=row_mask)
    centered = x - out_mean_0[:, None]
    out_squares_0 = tl.load(out_squares_0_ptr + row // 4, mask=row_mask)
    var = out_squares_0 / (4 * N)
    rstd = tl.rsqrt(var + 1e-05)
    weight = tl.load(weight_ptr + row % 16, mask=row_mask)
    normed = centered * rstd[:, None] * weight[:, None]
    time = tl.load(time_ptr + row, mask=row_mask)
    out = normed * tl.sigmoid(time)[:, None]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


@triton.jit
def out_in_registers_0_kernel(
    x_ptr,
    weight_ptr,
    time_ptr,
    out_ptr,
    N,
    n_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where 4 * N <= 16384."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    channel = tl.arange(0, BLOCK_C)
    col = tl.arange(0, BLOCK_N)
    row_mask = row < n_rows
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(
        x_ptr + (row[:, None, None] * 4 + channel[None, :, None]) * N + col[None, None, :],
        mask=mask[:, None, :],
        other=0.0,
    )
    mean = tl.sum(tl.sum(x, axis=2), axis=1) / (4 * N)
    centered = x - mean[:, None, None]
    var = (
        tl.sum(tl.sum(tl.where(col_mask[None, None, :], centered * centered, 0.0), axis=2), axis=1)
        / (4 * N)
    )
    rstd = tl.rsqrt(var + 1e-05)
    n_outer = row % 4
    weight = tl.load(weight_ptr + n_outer[:, None] * 4 + channel[None, :], mask=row_mask[:, None])
    normed = centered * rstd[:, None, None] * weight[:, :, None]
    time = tl.load(time_ptr + row[:, None] * 4 + channel[None, :], mask=row_mask[:, None])
    out = normed * tl.sigmoid(time)[:, :, None]
    tl.store(
        out_ptr + (row[:, None, None] * 4 + channel[None, :, None]) * N + col[None, None, :],
        out,
        mask=mask[:, None, :],
    )
