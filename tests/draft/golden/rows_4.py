import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(
    x_ptr,
    z_ptr,
    out_ptr,
    N,
    D,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for col_start in range(0, N, BLOCK_N):
        col = col_start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask, other=0.0)
        total_acc += tl.abs(x)
    total_acc_2 = tl.zeros([BLOCK_K], tl.float32)
    for k_start in range(0, D, BLOCK_K):
        k = k_start + tl.arange(0, BLOCK_K)
        k_mask = k < D
        z = tl.load(z_ptr + row * D + k, mask=k_mask, other=0.0)
        total_acc_2 += z * z
    out = tl.sum(total_acc, axis=0) + tl.sum(total_acc_2, axis=0)
    tl.store(out_ptr + row, out)


@triton.jit
def out_in_registers_0_kernel(
    x_ptr,
    z_ptr,
    out_ptr,
    M,
    N,
    D,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where N <= 16384 and D <= 16384."""
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    row_mask = row < M
    col_mask = col < N
    x = tl.load(
        x_ptr + row[:, None] * N + col[None, :],
        mask=row_mask[:, None] & col_mask[None, :],
        other=0.0,
    )
    k_mask = k < D
    z = tl.load(
        z_ptr + row[:, None] * D + k[None, :],
        mask=row_mask[:, None] & k_mask[None, :],
        other=0.0,
    )
    out = tl.sum(tl.abs(x), axis=1) + tl.sum(z * z, axis=1)
    tl.store(out_ptr + row, out, mask=row_mask)
