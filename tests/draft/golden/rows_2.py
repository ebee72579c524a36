import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(x_ptr, out_ptr, N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    largest_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        largest_acc = tl.maximum(
            largest_acc,
            tl.where(col_mask, tl.abs(x), -float("inf")),
            propagate_nan=tl.PropagateNan.ALL,
        )
    ratio = tl.reduce(largest_acc, axis=0, combine_fn=nan_max) * (1.0 / 127.0)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=col_mask)
        out = libdevice.rint(quotient_rn(x, ratio)).to(tl.int32).to(tl.int8)
        tl.store(out_ptr + row * N + col, out, mask=col_mask)


@triton.jit
def out_staged_0_kernel(
    x_ptr,
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
    largest_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < N
        x = tl.load(x_ptr + row * N + col, mask=inside, other=0.0)
        largest_acc = tl.maximum(
            largest_acc,
            tl.where(inside, tl.abs(x), -float("inf")),
            propagate_nan=tl.PropagateNan.ALL,
        )
    tl.store(partial_ptr + part * M + row, tl.reduce(largest_acc, axis=0, combine_fn=nan_max))


@triton.jit
def out_staged_1_kernel(
    partial_ptr,
    out_max_0_ptr,
    M,
    n_parts,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
    row = tl.program_id(0).to(INDEX)
    largest_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial = tl.load(
            partial_ptr + part.to(INDEX) * M + row,
            mask=part_mask,
            other=-float("inf"),
        )
        largest_acc = tl.maximum(largest_acc, partial, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_max_0_ptr + row, tl.reduce(largest_acc, axis=0, combine_fn=nan_max))


@triton.jit
def out_staged_2_kernel(
    x_ptr,
    out_max_0_ptr,
    out_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where M <= 511 and N > 32768."""
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
    out_max_0 = tl.load(out_max_0_ptr + row, mask=row_mask)
    ratio = out_max_0 * (1.0 / 127.0)
    out = libdevice.rint(quotient_rn(x, ratio[:, None])).to(tl.int32).to(tl.int8)
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


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
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask)
    ratio = (
        tl.reduce(tl.where(col_mask[None, :], tl.abs(x), -float("inf")), axis=1, combine_fn=nan_max)
        * (1.0 / 127.0)
    )
    out = libdevice.rint(quotient_rn(x, ratio[:, None])).to(tl.int32).to(tl.int8)
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)
