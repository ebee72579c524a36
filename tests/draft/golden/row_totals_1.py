import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_apart_0_kernel(y_ptr, x_ptr, out_row_0_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    y_max = -float("inf")
    denominator = 0.0
    x_max = -float("inf")
    x_sum = 0.0
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        y = tl.load(y_ptr + row * N + col, mask=col_mask, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(y_max, tl.max(y, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(y_max - shift)
        p = tl.exp(y - shift)
        denominator = denominator * rescale + tl.sum(p, axis=0)
        y_max = new_max
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=-float("inf")).to(tl.float32)
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
        y = tl.load(y_ptr + row * N + col, mask=col_mask).to(tl.float32)
        numerator = tl.exp(y - y_max)
        ratio = numerator / denominator
        chosen = tl.where(
            ratio != ratio,
            float("nan"),
            tl.where(ratio == 0.0, 0.0, ratio * tl.log(ratio)),
        )
        x = tl.load(x_ptr + row * N + col, mask=col_mask).to(tl.float32)
        shifted = x - x_max
        total_acc += tl.where(col_mask, chosen - ratio * (shifted - log_sum), 0.0)
    tl.store(out_row_0_ptr + row, tl.sum(total_acc, axis=0))


@triton.jit
def out_apart_1_kernel(out_row_0_ptr, partial_ptr, M, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    tl.static_assert(16384 % BLOCK_N == 0)
    part = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, 16384, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 16384 + i
        inside = col < M
        out_row_0 = tl.load(out_row_0_ptr + col, mask=inside, other=0.0).to(tl.float32)
        total_acc += out_row_0
    tl.store(partial_ptr + part, tl.sum(total_acc, axis=0))


@triton.jit
def out_apart_2_kernel(partial_ptr, out_ptr, n_parts, BLOCK_N: tl.constexpr):
    """Taken at any size."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial = tl.load(partial_ptr + part, mask=part_mask, other=0.0).to(tl.float32)
        total_acc += partial
    tl.store(out_ptr, tl.sum(total_acc, axis=0))


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
        ).to(tl.float32)
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
        ).to(tl.float32)
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
        partial_out = tl.load(partial_out_ptr + part, mask=part_mask, other=0.0).to(tl.float32)
        out_acc += partial_out
    out = tl.sum(out_acc, axis=0)
    tl.store(out_ptr, out)
