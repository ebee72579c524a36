import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_in_passes_0_kernel(x_ptr, out_ptr, n_cols, BLOCK_N: tl.constexpr):
    """Taken at any size."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < n_cols
        x = tl.load(x_ptr + col, mask=col_mask, other=0.0)
        total_acc += x * x
    tl.store(out_ptr, tl.sum(total_acc, axis=0))


@triton.jit
def out_split_0_kernel(x_ptr, partial_ptr, M_N, BLOCK_N: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    tl.static_assert(4096 % BLOCK_N == 0)
    part = tl.program_id(0).to(INDEX)
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, 4096, BLOCK_N):
        i = start + tl.arange(0, BLOCK_N)
        col = part * 4096 + i
        inside = col < M_N
        x = tl.load(x_ptr + col, mask=inside, other=0.0, eviction_policy="evict_first")
        total_acc += x * x
    tl.store(partial_ptr + part, tl.sum(total_acc, axis=0))


@triton.jit
def out_split_1_kernel(partial_ptr, out_ptr, n_parts, BLOCK_N: tl.constexpr):
    """Taken at any size."""
    total_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, n_parts, BLOCK_N):
        part = start + tl.arange(0, BLOCK_N)
        part_mask = part < n_parts
        partial = tl.load(partial_ptr + part, mask=part_mask, other=0.0)
        total_acc += partial
    tl.store(out_ptr, tl.sum(total_acc, axis=0))


@triton.jit
def out_in_registers_0_kernel(x_ptr, out_ptr, n_cols, BLOCK_N: tl.constexpr):
    """Taken where M * N <= 16384."""
    col = tl.arange(0, BLOCK_N)
    col_mask = col < n_cols
    x = tl.load(x_ptr + col, mask=col_mask, other=0.0)
    tl.store(out_ptr, tl.sum(x * x, axis=0))
