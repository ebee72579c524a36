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
        x = tl.load(
            x_ptr + row[:, None] * N + (N - 1 - col[None, :]),
            mask=mask,
            other=0.0,
        ).to(tl.float32)
        total = carry[:, None] + tl.cumsum(x, axis=1)
        is_last = col == start + BLOCK_N - 1
        carry = tl.sum(tl.where(is_last[None, :], total, 0.0), axis=1)
        tl.store(out_ptr + row[:, None] * N + (N - 1 - col[None, :]), total, mask=mask)


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
    x = tl.load(
        x_ptr + row[:, None] * N + (N - 1 - col[None, :]),
        mask=mask,
        other=0.0,
    ).to(tl.float32)
    tl.store(out_ptr + row[:, None] * N + (N - 1 - col[None, :]), tl.cumsum(x, axis=1), mask=mask)
