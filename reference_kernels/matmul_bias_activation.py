"""Matrix product with bias and activation in one kernel: out = gelu(x @ w + b).

x is [M, K], w is [K, N], b is [N], out is [M, N]; gelu(z) = z/2 * (1 + tanh(sqrt(2/pi) * (z + 0.044715
z**3))), Hendrycks and Gimpel, 2016, arXiv:1606.08415. The product itself never goes to memory; the programs
run in groups that share blocks of x and w in the L2 cache. Sums, bias and activation are float32, rounded
once, to x's dtype.

A float32 number is the sum of three bfloat16 terms, and of the nine products of such terms the six largest
make float32's accuracy on the tensor cores, where TF32 would keep 10 bits of 23. Large operands are split
once, by a kernel of their own, and multiplied as bfloat16 matrices; smaller ones are split block by block
where they are multiplied (bf16x6).

Technique: blocks in L2-friendly order, an epilogue in registers, float32 as six products of bfloat16 terms.
Topics: tiles, grids, masks, autotune, fusion and precision.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[M, K]",
    "w": "float32|bfloat16|float16[K, N]",
    "b": "float32|bfloat16|float16[N]",
}
DIMS = {"M": [1, 16, 200, 512], "N": [1, 64, 200, 512], "K": [1, 64, 200]}

# Rows of x and columns of w from which float32 operands are split once, not in every program that reads them.
SPLIT_FROM = 512
LARGEST_BFLOAT16 = tl.constexpr(3.3895313892515355e38)


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], all of one dtype. Returns [M, N] in that dtype."""
    return torch.nn.functional.gelu(torch.addmm(b, x, w), approximate="tanh")


CONFIGS = [
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k},
        num_warps=num_warps,
        num_stages=num_stages,
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
    ]
]


def worth_trying(
    configs: Sequence[triton.Config], arguments: Mapping[str, Any], **_: Any
) -> list[triton.Config]:
    """Leaves out blocks wider than the output and, in float32, those whose split operands would spill."""
    most_rows = triton.next_power_of_2(arguments["M"])
    most_cols = triton.next_power_of_2(arguments["N"])
    largest = 64 * 64 if arguments["x_ptr"].dtype == torch.float32 else 128 * 256
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
    x_row_stride,
    x_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program splits BLOCK_M x BLOCK_N elements, each into three terms of 8 bits, which add up to it.

    x_ptr: [n_rows, n_cols], float32, any strides. terms_ptr: [3, n_rows, n_cols], contiguous, largest first.
    """
    program = tl.program_id(0)
    programs_n = tl.cdiv(n_cols, BLOCK_N)
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
    size = n_rows.to(tl.int64) * n_cols
    offsets = rows * n_cols + cols
    tl.store(terms_ptr + offsets, first, mask=mask)
    tl.store(terms_ptr + size + offsets, second, mask=mask)
    tl.store(terms_ptr + 2 * size + offsets, third, mask=mask)


@triton.jit
def gelu(z):
    """z: float32, any shape."""
    # (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), and sqrt(2 / pi) * 2 is 1.5957691216057308.
    return z / (1.0 + tl.exp(-1.5957691216057308 * (z + 0.044715 * z * z * z)))


@triton.autotune(CONFIGS, key=["M", "N", "K"], prune_configs_by={"early_config_prune": worth_trying})
@triton.jit
def matmul_bias_activation_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    x_term_stride,
    x_row_stride,
    x_col_stride,
    w_term_stride,
    w_row_stride,
    w_col_stride,
    b_stride,
    TERMS: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N block of out.

    x_ptr: [TERMS, M, K] and w_ptr: [TERMS, K, N], any strides: the operands are the sums of their terms.
    b_ptr: [N], elements b_stride apart. out_ptr: [M, N], contiguous.
    """
    # Successive programs walk down GROUP_M rows of blocks before the next column: they share what L2 holds.
    program = tl.program_id(0)
    programs_m = tl.cdiv(M, BLOCK_M)
    programs_n = tl.cdiv(N, BLOCK_N)
    block_m, block_n = tl.swizzle2d(
        program // programs_n, program % programs_n, programs_m, programs_n, GROUP_M
    )
    rows = block_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = block_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K).to(tl.int64)
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + steps[None, :] * x_col_stride
    w_ptrs = w_ptr + steps[:, None] * w_row_stride + cols[None, :] * w_col_stride
    x_term_stride = tl.cast(x_term_stride, tl.int64)
    w_term_stride = tl.cast(w_term_stride, tl.int64)
    x_col_stride = tl.cast(x_col_stride, tl.int64)
    w_row_stride = tl.cast(w_row_stride, tl.int64)

    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # Each next term is 2**8 times smaller or more: the smallest products first, those whose terms' numbers
    # add up to 2, and smaller ones not at all.
    for level in tl.range(TERMS - 1, -1, -1):
        # What follows an infinite first term is NaN, and says nothing.
        total = tl.where(total == total, total, 0.0)
        for x_term in tl.range(0, level + 1):
            for start in tl.range(0, K, BLOCK_K):
                x_mask = (rows < M)[:, None] & (steps < K - start)[None, :]
                w_mask = (steps < K - start)[:, None] & (cols < N)[None, :]
                x_offset = x_term * x_term_stride + start * x_col_stride
                w_offset = (level - x_term) * w_term_stride + start * w_row_stride
                x = tl.load(x_ptrs + x_offset, mask=x_mask, other=0.0)
                w = tl.load(w_ptrs + w_offset, mask=w_mask, other=0.0)
                total = tl.dot(x, w, total, input_precision=INPUT_PRECISION)

    b = tl.load(b_ptr + cols * b_stride, mask=cols < N, other=0.0).to(tl.float32)
    out = gelu(total + b[None, :])
    out_mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], out, mask=out_mask)


def bfloat16_terms(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], float32, any strides. Returns its terms, [3, M, N], contiguous, largest first."""
    n_rows, n_cols = x.shape
    terms = torch.empty((3, n_rows, n_cols), dtype=torch.bfloat16, device=x.device)
    grid = (triton.cdiv(n_rows, 32) * triton.cdiv(n_cols, 128),)
    if terms.numel() > 0:
        bfloat16_terms_kernel[grid](x, terms, n_rows, n_cols, *x.stride(), BLOCK_M=32, BLOCK_N=128)
    return terms


def matmul_bias_activation(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    split = x.dtype == torch.float32 and min(M, N) >= SPLIT_FROM
    x_terms, w_terms = (bfloat16_terms(matrix) if split else matrix.unsqueeze(0) for matrix in (x, w))

    def grid(config: Mapping[str, int]) -> tuple[int]:
        """A program for each block of out."""
        return (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)

    interpreted = triton.runtime.driver.active.get_current_target().backend == "cpu"
    matmul_bias_activation_kernel[grid](
        x_terms,
        w_terms,
        b,
        out,
        M,
        N,
        K,
        *x_terms.stride(),
        *w_terms.stride(),
        b.stride(0),
        TERMS=x_terms.shape[0],
        # The interpreter's products are float32 already; it knows no bf16x6.
        INPUT_PRECISION="ieee" if interpreted else "bf16x6",
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
