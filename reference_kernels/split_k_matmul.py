"""Matrix product with sums in parts: out[m, n] = sum over parts P of K of sum_(k in P) x[m, k] * w[k, n].

x is [M, K], w is [K, N], out is [M, N]. Where out has fewer blocks than the GPU has multiprocessors, one
program for each block leaves the others idle, however long K is. Here the steps along K of all blocks stand
in one list, block after block, and every program takes the same number of them. If that number divides a
block's steps this is split-K; if it is whatever makes as many programs as multiprocessors, stream-K (Osama
et al., 2023, arXiv:2301.03598), where a share begins in one block and ends in another. A block that a share
covers is written at once. Other partial sums are stored in float32, and a second kernel adds them up in the
order of K: no atomics, every run gives the same bits. Sums are float32, rounded once, to x's dtype; float32
operands are multiplied as bf16x6, at float32's accuracy. Blocks of x and w travel by tensor descriptors
(TMA) where there are such and the strides allow them, otherwise through pointers.

Technique: split-K and stream-K as equal shares of one list of steps, partial sums added by a second kernel.
Topics: grids, reductions, meta-parameters, descriptors, device limits, dynamic shapes.
"""

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {"x": "float32|bfloat16|float16[M, K]", "w": "float32|bfloat16|float16[K, N]"}
DIMS = {"M": [1, 16, 200, 400], "N": [1, 67, 200, 800], "K": [1, 64, 1000, 3000]}

# A part of fewer steps costs more, to be stored and added, than it saves.
LEAST_STEPS = 8
# What a kernel needs of shared memory beside its stages.
SHARED_BYTES_BESIDE = 2**14


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype. Returns [M, N] in that dtype."""
    return x @ w


class Device(NamedTuple):
    """What matters here of the device in use."""

    multiprocessors: int
    shared_bytes: int
    """For one program."""
    l2_bytes: int
    has_tma: bool
    float32_precision: str
    """What `tl.dot` is asked for, for float32 operands."""


@functools.cache
def device_in_use(index: int) -> Device:
    """Asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "cpu":
        # The interpreter: it follows descriptors, and its products are exact enough.
        return Device(4, 2**18, 2**22, has_tma=True, float32_precision="ieee")
    properties = torch.cuda.get_device_properties(index)
    return Device(
        properties.multi_processor_count,
        triton.runtime.driver.active.utils.get_device_properties(index)["max_shared_mem"],
        properties.L2_cache_size,
        has_tma=target.backend == "cuda" and target.arch >= 90,
        float32_precision="bf16x6",
    )


def blocks_for(M: int, N: int, itemsize: int, device: Device) -> dict[str, int]:
    """Large blocks, as many stages as shared memory holds.

    Few rows of x are bound by the reading of w: for these many bytes on their way count, not large blocks.
    """
    BLOCK_M = min(max(triton.next_power_of_2(M), 16), 128)
    largest = 64 if BLOCK_M < 128 else 512 // itemsize
    BLOCK_N = min(max(triton.next_power_of_2(N), 16), largest)
    row_bytes = 256 if BLOCK_M < 128 else 128
    stages = (device.shared_bytes - SHARED_BYTES_BESIDE) // ((BLOCK_M + BLOCK_N) * row_bytes)
    return {
        "BLOCK_M": BLOCK_M,
        "BLOCK_N": BLOCK_N,
        "BLOCK_K": row_bytes // itemsize,
        "num_warps": 8 if BLOCK_M * BLOCK_N >= 128 * 128 else 4,
        "num_stages": min(max(stages, 2), 6),
    }


def steps_for_each(n_blocks: int, steps_per_block: int, operand_bytes: int, device: Device) -> int:
    """How many steps of the list a program takes."""
    parts = max(device.multiprocessors // n_blocks, 1)
    rounds = triton.cdiv(n_blocks * parts, device.multiprocessors)
    idle = 1 - n_blocks * parts / (rounds * device.multiprocessors)
    # Equal parts of all blocks: programs read the same K at one time and share it in the L2 cache. Shares
    # that make all multiprocessors work drift apart along K, which pays where that cache holds everything.
    if idle > 0.1 and operand_bytes <= device.l2_bytes:
        steps = triton.cdiv(n_blocks * steps_per_block, device.multiprocessors)
    else:
        steps = triton.cdiv(steps_per_block, parts)
    return max(steps, min(LEAST_STEPS, steps_per_block))


def operand(
    matrix: torch.Tensor, block: list[int], device: Device
) -> tuple[torch.Tensor | TensorDescriptor, str]:
    """What the kernel reads blocks by, and its layout: a descriptor of rows, one of columns, or pointers."""
    if device.has_tma and matrix.numel() > 0 and matrix.data_ptr() % 16 == 0:
        n_rows, n_cols = matrix.shape
        row_stride, col_stride = matrix.stride()
        if col_stride == 1 and row_stride >= n_cols and row_stride * matrix.element_size() % 16 == 0:
            return TensorDescriptor.from_tensor(matrix, block), "rows"
        if row_stride == 1 and col_stride >= n_rows and col_stride * matrix.element_size() % 16 == 0:
            return TensorDescriptor.from_tensor(matrix.t(), block[::-1]), "columns"
    return matrix, "pointers"


@triton.jit
def load_block(
    matrix,
    row,
    col,
    n_rows,
    n_cols,
    row_stride,
    col_stride,
    LAYOUT: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """The block of a matrix [n_rows, n_cols] at (row, col), zero beyond the edges: [BLOCK_ROWS, BLOCK_COLS].

    matrix: a descriptor of it (LAYOUT "rows"), one of its transpose ("columns"), or a pointer ("pointers").
    """
    if LAYOUT == "rows":
        block = matrix.load([row, col])
    elif LAYOUT == "columns":
        block = matrix.load([col, row]).T
    else:
        rows = tl.arange(0, BLOCK_ROWS).to(tl.int64)[:, None] + row
        cols = tl.arange(0, BLOCK_COLS).to(tl.int64)[None, :] + col
        mask = (rows < n_rows) & (cols < n_cols)
        block = tl.load(matrix + rows * row_stride + cols * col_stride, mask=mask, other=0.0)
    return block


@triton.jit
def corner(block, M, N, GROUP_M: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Row and column at which the list's block-th block of out begins; neighbours share rows of blocks."""
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    block_m, block_n = tl.swizzle2d(block // blocks_n, block % blocks_n, blocks_m, blocks_n, GROUP_M)
    return block_m * BLOCK_M, block_n * BLOCK_N


@triton.jit
def split_k_matmul_kernel(
    x,
    w,
    out_ptr,
    partial_ptr,
    M,
    N,
    K,
    x_row_stride,
    x_col_stride,
    w_row_stride,
    w_col_stride,
    n_steps,
    steps_per_block,
    steps_per_program,
    parts,
    X_LAYOUT: tl.constexpr,
    W_LAYOUT: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Share p of the list are its steps p * steps_per_program and following, of n_steps.

    Each parts-th share comes first, then each that follows one of these: where all blocks have parts shares,
    neighbouring programs multiply the same part of K, and share in the L2 cache what they read.
    x: [M, K] and w: [K, N], descriptors or pointers as their LAYOUT says. out_ptr: [M, N], contiguous.
    partial_ptr: [n_shares, 2, BLOCK_M, BLOCK_N]: a share has at most one sum that another one began, at 0,
    and one that it begins itself and does not end, at 1.
    """
    firsts = tl.num_programs(0) // parts
    share = (tl.program_id(0) % firsts * parts + tl.program_id(0) // firsts).to(tl.int64)
    first = share * steps_per_program
    end = tl.minimum(first + steps_per_program, n_steps)
    for block in tl.range(first // steps_per_block, tl.cdiv(end, steps_per_block)):
        row, col = corner(block.to(tl.int32), M, N, GROUP_M, BLOCK_M, BLOCK_N)
        start = tl.maximum(first - block * steps_per_block, 0).to(tl.int32)
        stop = tl.minimum(end - block * steps_per_block, steps_per_block).to(tl.int32)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in tl.range(start, stop):
            k = step * BLOCK_K
            a = load_block(x, row, k, M, K, x_row_stride, x_col_stride, X_LAYOUT, BLOCK_M, BLOCK_K)
            b = load_block(w, k, col, K, N, w_row_stride, w_col_stride, W_LAYOUT, BLOCK_K, BLOCK_N)
            total = tl.dot(a, b, total, input_precision=INPUT_PRECISION)
        rows = tl.arange(0, BLOCK_M).to(tl.int64)[:, None]
        cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        if stop - start == steps_per_block:
            mask = (rows + row < M) & (cols + col < N)
            tl.store(out_ptr + (rows + row) * N + cols + col, total, mask=mask)
        else:
            place = share * 2 + (start == 0)
            tl.store(partial_ptr + (place * BLOCK_M + rows) * BLOCK_N + cols, total)


@triton.jit
def add_partials_kernel(
    partial_ptr,
    out_ptr,
    M,
    N,
    steps_per_block,
    steps_per_program,
    GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Program (block, i) adds up the i-th ROWS rows of the list's block-th block, if it came in parts.

    partial_ptr: [n_shares, 2, BLOCK_M, BLOCK_N]. out_ptr: [M, N], contiguous.
    """
    block = tl.program_id(0).to(tl.int64)
    first_share = block * steps_per_block // steps_per_program
    last_share = ((block + 1) * steps_per_block - 1) // steps_per_program
    if first_share < last_share:
        rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS).to(tl.int64)[:, None]
        cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
        total = tl.zeros((ROWS, BLOCK_N), tl.float32)
        for share in tl.range(first_share, last_share + 1, num_stages=5):
            place = share * 2 + (share == first_share)
            total += tl.load(partial_ptr + (place * BLOCK_M + rows) * BLOCK_N + cols)
        row, col = corner(block.to(tl.int32), M, N, GROUP_M, BLOCK_M, BLOCK_N)
        mask = (rows + row < M) & (cols + col < N)
        tl.store(out_ptr + (rows + row) * N + cols + col, total, mask=mask)


def split_k_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    device = device_in_use(triton.runtime.driver.active.get_current_device())
    blocks = blocks_for(M, N, x.element_size(), device)
    BLOCK_M, BLOCK_N, BLOCK_K = blocks["BLOCK_M"], blocks["BLOCK_N"], blocks["BLOCK_K"]
    n_blocks = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    # Where K is 0, one step, which reads zeros.
    steps_per_block = max(triton.cdiv(K, BLOCK_K), 1)
    n_steps = n_blocks * steps_per_block
    operand_bytes = (x.numel() + w.numel()) * x.element_size()
    steps_per_program = steps_for_each(n_blocks, steps_per_block, operand_bytes, device)
    n_programs = triton.cdiv(n_steps, steps_per_program)
    comes_in_parts = steps_per_program % steps_per_block != 0
    parts = steps_per_block // steps_per_program if steps_per_block % steps_per_program == 0 else 1
    partial = torch.empty(
        (n_programs if comes_in_parts else 0, 2, BLOCK_M, BLOCK_N), dtype=torch.float32, device=x.device
    )
    x_operand, x_layout = operand(x, [BLOCK_M, BLOCK_K], device)
    w_operand, w_layout = operand(w, [BLOCK_K, BLOCK_N], device)
    split_k_matmul_kernel[(n_programs,)](
        x_operand,
        w_operand,
        out,
        partial,
        M,
        N,
        K,
        *x.stride(),
        *w.stride(),
        n_steps,
        steps_per_block,
        steps_per_program,
        parts,
        X_LAYOUT=x_layout,
        W_LAYOUT=w_layout,
        INPUT_PRECISION=device.float32_precision,
        GROUP_M=8,
        **blocks,
    )
    if comes_in_parts:
        rows = min(2048 // BLOCK_N, BLOCK_M)
        add_partials_kernel[(n_blocks, BLOCK_M // rows)](
            partial,
            out,
            M,
            N,
            steps_per_block,
            steps_per_program,
            GROUP_M=8,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            ROWS=rows,
        )
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("split_k_matmul(Tensor x, Tensor w) -> Tensor")
library.impl("split_k_matmul", split_k_matmul, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::split_k_matmul",
    lambda x, w: x.new_empty((x.shape[0], w.shape[1])),
    lib=library,
)


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    return torch.ops.reference_kernels.split_k_matmul(x, w)
