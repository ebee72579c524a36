import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_elements_0_kernel(
    x_ptr,
    dt_ptr,
    out_ptr,
    N,
    n_elements,
    BLOCK: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    i_mask = i < n_elements
    x = tl.load(x_ptr + i, mask=i_mask)
    m = i // N
    dt = tl.load(dt_ptr + m, mask=i_mask)
    out = x * tl.exp(-dt)
    tl.store(out_ptr + i, out, mask=i_mask)


@triton.jit
def out_rows_0_kernel(
    x_ptr,
    dt_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
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
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask)
    dt = tl.load(dt_ptr + row, mask=row_mask)
    out = x * tl.exp(-dt)[:, None]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)
