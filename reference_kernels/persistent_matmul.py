"""Matrix product by programs that stay: out[m, n] = sum_k x[m, k] * w[k, n].

x is [M, K], w is [K, N], out is [M, N]. About as many programs are launched as the GPU has multiprocessors,
and each computes one block of out after the other. The loops over blocks and over K are flattened into one
pipeline: the next block's loads run while the last block is stored. Where there is a TMA unit (Hopper and
newer), blocks travel by tensor descriptors. These want adjacent columns and rows 16 bytes aligned: a matrix
that is laid out so, or whose transpose is, gets one, any other is read and written through pointers. Sums
are float32, rounded once, to x's dtype; float32 operands are multiplied as bf16x6, at float32's accuracy.

Technique: persistent programs, tensor descriptors (TMA) where strides allow, a pipeline across blocks.
Topics: grids, autotune, pipelining and persistence, descriptors, profiling, device limits.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {"x": "float32|bfloat16|float16[M, K]", "w": "float32|bfloat16|float16[K, N]"}
DIMS = {"M": [1, 16, 200, 1024], "N": [1, 67, 200, 1024], "K": [1, 64, 200, 1024]}

# A row of a block of x: the widest that shared memory swizzles without bank conflicts.
BLOCK_BYTES = 128


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype. Returns [M, N] in that dtype."""
    return x @ w


class Device(NamedTuple):
    """What matters here of the device in use."""

    multiprocessors: int
    has_tma: bool
    float32_precision: str
    """What `tl.dot` is asked for, for float32 operands."""


@functools.cache
def device_in_use(index: int) -> Device:
    """Asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "cpu":
        # The interpreter: it follows descriptors, its products are exact enough, and two programs show all.
        return Device(multiprocessors=2, has_tma=True, float32_precision="ieee")
    limits = triton.runtime.driver.active.utils.get_device_properties(index)
    has_tma = target.backend == "cuda" and target.arch >= 90
    return Device(limits["multiprocessor_count"], has_tma, float32_precision="bf16x6")


def layout_of(matrix: torch.Tensor, device: Device) -> str:
    """How the kernel reaches it: by a descriptor of its rows, one of its columns, or through pointers."""
    if device.has_tma and matrix.numel() > 0 and matrix.data_ptr() % 16 == 0:
        n_rows, n_cols = matrix.shape
        row_stride, col_stride = matrix.stride()
        if col_stride == 1 and row_stride >= n_cols and row_stride * matrix.element_size() % 16 == 0:
            return "rows"
        if row_stride == 1 and col_stride >= n_rows and col_stride * matrix.element_size() % 16 == 0:
            return "columns"
    return "pointers"


def operand(matrix: torch.Tensor, layout: str) -> torch.Tensor | TensorDescriptor:
    """What the kernel takes for it; `set_blocks` knows the descriptor's block."""
    if layout == "pointers":
        return matrix
    return TensorDescriptor.from_tensor(matrix.t() if layout == "columns" else matrix, [1, 1])


def set_blocks(arguments: dict[str, Any]) -> None:
    """Gives each descriptor the block of the configuration that is about to run."""
    BLOCK_M, BLOCK_N, BLOCK_K = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    blocks = {"x": [BLOCK_M, BLOCK_K], "w": [BLOCK_K, BLOCK_N], "out": [BLOCK_M, BLOCK_N // 2]}
    for name, block in blocks.items():
        if isinstance(arguments[name], TensorDescriptor):
            by_columns = arguments[f"{name.upper()}_LAYOUT"] == "columns"
            arguments[name].block_shape = block[::-1] if by_columns else block


CONFIGS = [
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n},
        num_warps=num_warps,
        num_stages=num_stages,
        pre_hook=set_blocks,
    )
    for block_m, block_n, num_warps, num_stages in [
        (64, 64, 4, 3),
        (64, 128, 4, 4),
        (128, 128, 8, 4),
        (128, 256, 8, 3),
        (128, 256, 8, 4),
    ]
]


def worth_trying(
    configs: Sequence[triton.Config], arguments: Mapping[str, Any], **options: Any
) -> list[triton.Config]:
    """Leaves out blocks wider than out and, in float32, those whose split operands would spill."""
    most_rows = triton.next_power_of_2(arguments["M"])
    most_cols = triton.next_power_of_2(arguments["N"])
    largest = 128 * 128 if options["BLOCK_K"] == BLOCK_BYTES // 4 else 128 * 256
    smallest, *others = configs
    return [smallest] + [
        config
        for config in others
        if config.kwargs["BLOCK_M"] <= most_rows
        and config.kwargs["BLOCK_N"] <= most_cols
        and config.kwargs["BLOCK_M"] * config.kwargs["BLOCK_N"] <= largest
    ]


def work(grid: tuple[int, ...], kernel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a profiler (Proton) reports rates of: operations by the operands' width, and least bytes moved."""
    M, N, K = (arguments[size] for size in "MNK")
    itemsize = BLOCK_BYTES // arguments["BLOCK_K"]
    return {
        "name": f"{kernel.name}_{M}x{N}x{K}",
        f"flops{8 * itemsize}": 2 * M * N * K,
        "bytes": (M * K + K * N + M * N) * itemsize,
    }


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
def store_block(matrix, row, col, block, n_rows, n_cols, LAYOUT: tl.constexpr):
    """Writes what of the block lies within a contiguous matrix [n_rows, n_cols], from (row, col) on.

    matrix: a descriptor of it (LAYOUT "rows") or a pointer ("pointers").
    """
    if LAYOUT == "rows":
        matrix.store([row, col], block.to(matrix.dtype))
    else:
        rows = tl.arange(0, block.shape[0]).to(tl.int64)[:, None] + row
        cols = tl.arange(0, block.shape[1]).to(tl.int64)[None, :] + col
        tl.store(matrix + rows * n_cols + cols, block, mask=(rows < n_rows) & (cols < n_cols))


@triton.autotune(
    CONFIGS,
    # BLOCK_K stands for the dtype, which descriptors hide from the tuner.
    key=["M", "N", "K", "X_LAYOUT", "W_LAYOUT", "BLOCK_K"],
    prune_configs_by={"early_config_prune": worth_trying},
)
@triton.jit(launch_metadata=work)
def persistent_matmul_kernel(
    x,
    w,
    out,
    M,
    N,
    K,
    x_row_stride,
    x_col_stride,
    w_row_stride,
    w_col_stride,
    X_LAYOUT: tl.constexpr,
    W_LAYOUT: tl.constexpr,
    OUT_LAYOUT: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program p computes blocks p, p + n_programs, ... of out, each BLOCK_M x BLOCK_N.

    x: [M, K], w: [K, N] and out: [M, N], descriptors or pointers as their LAYOUT says; out is contiguous.
    """
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    for i in tl.range(tl.program_id(0), blocks_m * blocks_n, tl.num_programs(0), flatten=True):
        # Blocks of GROUP_M rows are computed at a time: they share x and w in the L2 cache.
        block_m, block_n = tl.swizzle2d(i // blocks_n, i % blocks_n, blocks_m, blocks_n, GROUP_M)
        row = block_m * BLOCK_M
        col = block_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            a = load_block(x, row, k, M, K, x_row_stride, x_col_stride, X_LAYOUT, BLOCK_M, BLOCK_K)
            b = load_block(w, k, col, K, N, w_row_stride, w_col_stride, W_LAYOUT, BLOCK_K, BLOCK_N)
            total = tl.dot(a, b, total, input_precision=INPUT_PRECISION)
        # By halves, which take half the shared memory on their way: what they leave is a stage more.
        left, right = tl.split(total.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        store_block(out, row, col, left, M, N, OUT_LAYOUT)
        store_block(out, row, col + BLOCK_N // 2, right, M, N, OUT_LAYOUT)


def persistent_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    device = device_in_use(triton.runtime.driver.active.get_current_device())
    layouts = [layout_of(matrix, device) for matrix in (x, w, out)]

    def grid(config: Mapping[str, int]) -> tuple[int]:
        """Programs that have equally many blocks, one for each multiprocessor at most."""
        blocks = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
        return (triton.cdiv(blocks, triton.cdiv(blocks, device.multiprocessors)),)

    persistent_matmul_kernel[grid](
        *map(operand, (x, w, out), layouts),
        M,
        N,
        K,
        *x.stride(),
        *w.stride(),
        *layouts,
        INPUT_PRECISION=device.float32_precision,
        GROUP_M=16,
        BLOCK_K=BLOCK_BYTES // x.element_size(),
    )
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("persistent_matmul(Tensor x, Tensor w) -> Tensor")
library.impl("persistent_matmul", persistent_matmul, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::persistent_matmul",
    lambda x, w: x.new_empty((x.shape[0], w.shape[1])),
    lib=library,
)


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    return torch.ops.reference_kernels.persistent_matmul(x, w)
