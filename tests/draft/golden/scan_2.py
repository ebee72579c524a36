import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_2_carried_0_kernel(
    x_ptr,
    out_ptr,
    out_2_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = row < M
    best_carry = tl.full([BLOCK_M], -float("inf"), tl.float32)
    at_carry = tl.full([BLOCK_M], -1, tl.int64)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        mask = row_mask[:, None] & col_mask[None, :]
        x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask, other=-float("inf"))
        x_best, x_at = tl.associative_scan(
            (x, tl.broadcast_to(col[None, :], [BLOCK_M, BLOCK_N])),
            1,
            last_argmax,
        )
        x_best, x_at = last_argmax(best_carry[:, None], at_carry[:, None], x_best, x_at)
        is_last = col == start + BLOCK_N - 1
        best_carry = tl.sum(tl.where(is_last[None, :], x_best, 0.0), axis=1)
        at_carry = tl.sum(tl.where(is_last[None, :], x_at, 0), axis=1)
        tl.store(out_ptr + row[:, None] * N + col[None, :], x_best, mask=mask)
        tl.store(out_2_ptr + row[:, None] * N + col[None, :], x_at, mask=mask)


@triton.jit
def out_2_in_registers_0_kernel(
    x_ptr,
    out_ptr,
    out_2_ptr,
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
    x_best, x_at = tl.associative_scan(
        (x, tl.broadcast_to(col[None, :], [BLOCK_M, BLOCK_N])),
        1,
        last_argmax,
    )
    tl.store(out_ptr + row[:, None] * N + col[None, :], x_best, mask=mask)
    tl.store(out_2_ptr + row[:, None] * N + col[None, :], x_at, mask=mask)
