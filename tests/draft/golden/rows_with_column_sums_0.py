import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_3_apart_0_kernel(
    g_ptr,
    w_ptr,
    x_ptr,
    rstd_ptr,
    out_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    rstd = tl.load(rstd_ptr + row)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        g = tl.load(g_ptr + row * N + col, mask=col_mask)
        w = tl.load(w_ptr + col, mask=col_mask)
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        x_hat = x * rstd
        total_acc += tl.where(col_mask, g * w * x_hat, 0.0)
    along = tl.sum(total_acc, axis=0) / N
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        g = tl.load(g_ptr + row * N + col, mask=col_mask)
        w = tl.load(w_ptr + col, mask=col_mask)
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        x_hat = x * rstd
        out = (g * w - x_hat * along) * rstd
        tl.store(out_ptr + row * N + col, out, mask=col_mask)


@triton.jit
def out_3_apart_1_kernel(
    g_ptr,
    x_ptr,
    rstd_ptr,
    out_2_ptr,
    out_3_ptr,
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
    total_acc_2 = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < M
        mask = row_mask[:, None] & col_mask[None, :]
        g = tl.load(g_ptr + row[:, None].to(INDEX) * N + col[None, :], mask=mask, other=0.0)
        x = tl.load(x_ptr + row[:, None].to(INDEX) * N + col[None, :], mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row, mask=row_mask, other=0.0)
        x_hat = x * rstd[:, None]
        total_acc += g * x_hat
        total_acc_2 += g
    tl.store(out_2_ptr + col, tl.sum(total_acc, axis=0), mask=col_mask)
    tl.store(out_3_ptr + col, tl.sum(total_acc_2, axis=0), mask=col_mask)


@triton.jit
def out_3_in_shares_0_kernel(
    g_ptr,
    w_ptr,
    x_ptr,
    rstd_ptr,
    out_ptr,
    partial_out_2_ptr,
    partial_out_3_ptr,
    M,
    N,
    rows_per_program,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 8192."""
    part = tl.program_id(0).to(INDEX)
    col = tl.arange(0, BLOCK_N)
    first_row = part * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, M)
    col_mask = col < N
    w = tl.load(w_ptr + col, mask=col_mask)
    out_2_acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    out_3_acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        row = start + tl.arange(0, BLOCK_M)
        row_mask = row < end_row
        mask = row_mask[:, None] & col_mask[None, :]
        g = tl.load(g_ptr + row[:, None] * N + col[None, :], mask=mask)
        product = g * w[None, :]
        x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask)
        rstd = tl.load(rstd_ptr + row, mask=row_mask)
        x_hat = x * rstd[:, None]
        along = tl.sum(tl.where(col_mask[None, :], product * x_hat, 0.0), axis=1) / N
        out = (product - x_hat * along[:, None]) * rstd[:, None]
        tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)
        out_2_acc += tl.where(row_mask[:, None], g * x_hat, 0.0)
        out_3_acc += tl.where(row_mask[:, None], g, 0.0)
    out_2 = tl.sum(out_2_acc, axis=0)
    out_3 = tl.sum(out_3_acc, axis=0)
    tl.store(partial_out_2_ptr + part * N + col, out_2, mask=col_mask)
    tl.store(partial_out_3_ptr + part * N + col, out_3, mask=col_mask)


@triton.jit
def out_3_in_shares_1_kernel(
    partial_out_2_ptr,
    partial_out_3_ptr,
    out_2_ptr,
    out_3_ptr,
    N,
    n_parts,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 8192."""
    col = tl.program_id(0).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < N
    out_2_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    out_3_acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_K):
        part = start + tl.arange(0, BLOCK_K)
        part_mask = part < n_parts
        mask = part_mask[:, None] & col_mask[None, :]
        partial_out_2 = tl.load(
            partial_out_2_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=mask,
            other=0.0,
        )
        out_2_acc += partial_out_2
        partial_out_3 = tl.load(
            partial_out_3_ptr + part[:, None].to(INDEX) * N + col[None, :],
            mask=mask,
            other=0.0,
        )
        out_3_acc += partial_out_3
    out_2 = tl.sum(out_2_acc, axis=0)
    out_3 = tl.sum(out_3_acc, axis=0)
    tl.store(out_2_ptr + col, out_2, mask=col_mask)
    tl.store(out_3_ptr + col, out_3, mask=col_mask)
