import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_elements_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    n_elements,
    BLOCK: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    m = i % M
    n = i // M
    i_mask = i < n_elements
    x = tl.load(x_ptr + m * N + n, mask=i_mask)
    out = x * 2.0
    tl.store(out_ptr + i, out, mask=i_mask)


@triton.jit
def out_tiled_0_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(M, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < N
    col_mask = col < M
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + col[None, :] * N + row[:, None], mask=mask)
    out = x * 2.0
    tl.store(out_ptr + row[:, None] * M + col[None, :], out, mask=mask)
