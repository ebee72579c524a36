"""Matrix product with bias and activation in one kernel: out = gelu(x @ w + b).

x is [M, K], w is [K, N], b is [N], out is [M, N]; gelu(z) = z/2 * (1 + tanh(sqrt(2/pi) * (z + 0.044715
z**3))), Hendrycks and Gimpel, 2016, arXiv:1606.08415. The product itself never goes to memory; the programs
run in groups that share blocks of x and w in the L2 cache. Where there is a TMA unit (Hopper and newer),
blocks travel by tensor descriptors, straight into the shared memory that they are multiplied from; strides
that these cannot follow, and other GPUs, take pointers. Sums, bias and activation are float32, rounded once,
to x's dtype.

A float32 number is the sum of three bfloat16 terms, and of the nine products of such terms the six largest
make float32's accuracy on the tensor cores, where TF32 would keep 10 bits of 23. Large operands are split
once, by a kernel of their own, and multiplied as bfloat16 matrices; smaller ones are split block by block
where they are multiplied (bf16x6).

Technique: blocks in L2-friendly order, an epilogue in registers, float32 as six products of bfloat16 terms.
Topics: tiles, grids, masks, autotune, fusion and precision, descriptors.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {
    "x": "float32|bfloat16|float16[M, K]",
    "w": "float32|bfloat16|float16[K, N]",
    "b": "float32|bfloat16|float16[N]",
}
DIMS = {"M": [1, 16, 200, 512], "N": [1, 64, 200, 512], "K": [1, 64, 200]}

# Rows of x and columns of w from which float32 operands are split once, not in every program that reads them.
SPLIT_FROM = 512
# Of a split operand's terms: the largest BLOCK_K.
TERM_ALIGNMENT = 128
LARGEST_BFLOAT16 = tl.constexpr(3.3895313892515355e38)


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], all of one dtype. Returns [M, N] in that dtype."""
    return torch.nn.functional.gelu(torch.addmm(b, x, w), approximate="tanh")


def set_blocks(arguments: dict[str, Any]) -> None:
    """Gives each descriptor the block of the configuration that is about to run."""
    BLOCK_M, BLOCK_N, BLOCK_K = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    for name, block in {"x": [BLOCK_M, BLOCK_K], "w": [BLOCK_K, BLOCK_N]}.items():
        if isinstance(arguments[name], TensorDescriptor):
            by_columns = arguments[f"{name.upper()}_LAYOUT"] == "columns"
            arguments[name].block_shape = block[::-1] if by_columns else block


CONFIGS = [
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k},
        num_warps=num_warps,
        num_stages=num_stages,
        pre_hook=set_blocks,
    )
    for block_m, block_n, block_k, num_warps, num_stages in [
        (32, 64, 64, 4, 3),
        (16, 64, 64, 4, 5),
        (16, 64, 128, 4, 6),
        (64, 64, 64, 4, 4),
        (64, 128, 64, 4, 4),
        (128, 128, 64, 4, 3),
        (128, 256, 64, 8, 3),
        (128, 256, 64, 8, 4),
        (256, 128, 64, 8, 4),
    ]
]


def worth_trying(
    configs: Sequence[triton.Config], arguments: Mapping[str, Any], **_: Any
) -> list[triton.Config]:
    """Leaves out blocks wider than the output and, in float32, those whose split operands would spill."""
    most_rows = triton.next_power_of_2(arguments["M"])
    most_cols = triton.next_power_of_2(arguments["N"])
    splits_in_registers = arguments["out_ptr"].dtype == torch.float32 and arguments["TERMS"] == 1
    largest = 64 * 64 if splits_in_registers else 128 * 256
    smallest, *others = configs
    return [smallest] + [
        config
        for config in others
        if config.kwargs["BLOCK_M"] <= most_rows
        and config.kwargs["BLOCK_N"] <= most_cols
        and config.kwargs["BLOCK_M"] * config.kwargs["BLOCK_N"] <= largest
    ]


@triton.jit
def bfloat16_terms_kernel(
    x_ptr,
    terms_ptr,
    n_rows,
    n_cols,
    term_rows,
    term_cols,
    x_row_stride,
    x_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program splits BLOCK_M x BLOCK_N elements, each into three terms of 8 bits, which add up to it.

    x_ptr: [n_rows, n_cols], float32, any strides. terms_ptr: [3, term_rows, term_cols], contiguous, largest
    first, zeros beyond x.
    """
    program = tl.program_id(0)
    programs_n = tl.cdiv(term_cols, BLOCK_N)
    rows = (program // programs_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = (program % programs_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    # The largest float32 numbers would be rounded to infinity.
    within = tl.clamp(x, -LARGEST_BFLOAT16, LARGEST_BFLOAT16)
    first = tl.where(tl.abs(x) < float("inf"), within, x).to(tl.bfloat16)
    rest = x - first.to(tl.float32)
    second = rest.to(tl.bfloat16)
    third = (rest - second.to(tl.float32)).to(tl.bfloat16)
    size = term_rows.to(tl.int64) * term_cols
    offsets = rows * term_cols + cols
    mask = (rows < term_rows) & (cols < term_cols)
    tl.store(terms_ptr + offsets, first, mask=mask)
    tl.store(terms_ptr + size + offsets, second, mask=mask)
    tl.store(terms_ptr + 2 * size + offsets, third, mask=mask)


@triton.jit
def gelu(z):
    """z: float32, any shape."""
    # (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), and sqrt(2 / pi) * 2 is 1.5957691216057308.
    return z / (1.0 + tl.exp(-1.5957691216057308 * (z + 0.044715 * z * z * z)))


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


@triton.autotune(
    CONFIGS,
    key=["M", "N", "K", "X_LAYOUT", "W_LAYOUT"],
    prune_configs_by={"early_config_prune": worth_trying},
)
@triton.jit
def matmul_bias_activation_kernel(
    x,
    w,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    x_rows,
    x_row_stride,
    x_col_stride,
    w_rows,
    w_row_stride,
    w_col_stride,
    b_stride,
    TERMS: tl.constexpr,
    X_LAYOUT: tl.constexpr,
    W_LAYOUT: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N block of out.

    x: [TERMS * x_rows, K] and w: [TERMS * w_rows, N], descriptors or pointers as their LAYOUT says; each
    operand is the sum of its terms, which stand below each other. b_ptr: [N], elements b_stride apart.
    out_ptr: [M, N], contiguous.
    """
    # Successive programs walk down GROUP_M rows of blocks before the next column: they share what L2 holds.
    program = tl.program_id(0)
    programs_m = tl.cdiv(M, BLOCK_M)
    programs_n = tl.cdiv(N, BLOCK_N)
    block_m, block_n = tl.swizzle2d(
        program // programs_n, program % programs_n, programs_m, programs_n, GROUP_M
    )
    row = block_m * BLOCK_M
    col = block_n * BLOCK_N

    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # Each next term is 2**8 times smaller or more: the smallest products first, those whose terms' numbers
    # add up to 2, and smaller ones not at all.
    for level in tl.range(TERMS - 1, -1, -1):
        # What follows an infinite first term is NaN, and says nothing.
        total = tl.where(total == total, total, 0.0)
        for x_term in tl.range(0, level + 1):
            x_row = x_term * x_rows + row
            w_row = (level - x_term) * w_rows
            for k in tl.range(0, K, BLOCK_K):
                x_block = load_block(
                    x, x_row, k, TERMS * x_rows, K, x_row_stride, x_col_stride, X_LAYOUT, BLOCK_M, BLOCK_K
                )
                w_block = load_block(
                    w,
                    w_row + k,
                    col,
                    TERMS * w_rows,
                    N,
                    w_row_stride,
                    w_col_stride,
                    W_LAYOUT,
                    BLOCK_K,
                    BLOCK_N,
                )
                total = tl.dot(x_block, w_block, total, input_precision=INPUT_PRECISION)

    rows = row.to(tl.int64) + tl.arange(0, BLOCK_M)[:, None]
    cols = col.to(tl.int64) + tl.arange(0, BLOCK_N)[None, :]
    b = tl.load(b_ptr + cols * b_stride, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * N + cols, gelu(total + b), mask=(rows < M) & (cols < N))


def bfloat16_terms(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], float32, any strides. Returns its three terms below each other, largest first.

    Each has TERM_ALIGNMENT rows and columns or a multiple of them, of which those beyond x are zeros, so that
    no block reaches from one term into the next.
    """
    n_rows, n_cols = x.shape
    term_rows, term_cols = (triton.cdiv(size, TERM_ALIGNMENT) * TERM_ALIGNMENT for size in x.shape)
    terms = torch.empty((3 * term_rows, term_cols), dtype=torch.bfloat16, device=x.device)
    grid = (triton.cdiv(term_rows, 32) * triton.cdiv(term_cols, 128),)
    if terms.numel() > 0:
        bfloat16_terms_kernel[grid](
            x, terms, n_rows, n_cols, term_rows, term_cols, *x.stride(), BLOCK_M=32, BLOCK_N=128
        )
    return terms


class Device(NamedTuple):
    """What matters here of the device in use."""

    has_tma: bool
    float32_precision: str
    """What `tl.dot` is asked for, for float32 operands."""


@functools.cache
def device_in_use(index: int) -> Device:
    """Asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "cpu":
        # The interpreter: it follows descriptors, and its products are float32 already; it knows no bf16x6.
        return Device(has_tma=True, float32_precision="ieee")
    return Device(has_tma=target.backend == "cuda" and target.arch >= 90, float32_precision="bf16x6")


def layout_of(matrix: torch.Tensor, device: Device) -> str:
    """How the kernel reaches it: by a descriptor of its rows, one of its columns, or through pointers."""
    # Rows of a block of float32 would be wider than what shared memory swizzles without bank conflicts.
    if device.has_tma and matrix.itemsize == 2 and matrix.numel() > 0 and matrix.data_ptr() % 16 == 0:
        n_rows, n_cols = matrix.shape
        row_stride, col_stride = matrix.stride()
        if col_stride == 1 and row_stride >= n_cols and row_stride % 8 == 0:
            return "rows"
        if row_stride == 1 and col_stride >= n_rows and col_stride % 8 == 0:
            return "columns"
    return "pointers"


def operand(matrix: torch.Tensor, layout: str) -> torch.Tensor | TensorDescriptor:
    """What the kernel takes for it; `set_blocks` knows the descriptor's block."""
    if layout == "pointers":
        return matrix
    return TensorDescriptor.from_tensor(matrix.t() if layout == "columns" else matrix, [1, 1])


def matmul_bias_activation(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    TERMS = 3 if x.dtype == torch.float32 and min(M, N) >= SPLIT_FROM else 1
    operands = (bfloat16_terms(x), bfloat16_terms(w)) if TERMS == 3 else (x, w)
    device = device_in_use(triton.runtime.driver.active.get_current_device())
    layouts = [layout_of(matrix, device) for matrix in operands]
    sizes = [(matrix.shape[0] // TERMS, *matrix.stride()) for matrix in operands]

    def grid(config: Mapping[str, int]) -> tuple[int]:
        """A program for each block of out."""
        return (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)

    matmul_bias_activation_kernel[grid](
        *map(operand, operands, layouts),
        b,
        out,
        M,
        N,
        K,
        *sizes[0],
        *sizes[1],
        b.stride(0),
        TERMS,
        *layouts,
        INPUT_PRECISION=device.float32_precision,
        GROUP_M=8,
    )
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("matmul_bias_activation(Tensor x, Tensor w, Tensor b) -> Tensor")
library.impl("matmul_bias_activation", matmul_bias_activation, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::matmul_bias_activation",
    lambda x, w, b: x.new_empty((x.shape[0], w.shape[1])),
    lib=library,
)


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    return torch.ops.reference_kernels.matmul_bias_activation(x, w, b)
