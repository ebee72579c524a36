"""Matrix product with bias and activation in one kernel: out = gelu(x @ w + b).

x is [M, K], w is [K, N], b is [N], out is [M, N]; gelu(z) = z/2 * (1 + tanh(sqrt(2/pi) * (z + 0.044715
z**3))), Hendrycks and Gimpel, 2016, arXiv:1606.08415. The product itself never goes to memory; the programs
run in groups that share blocks of x and w in the L2 cache. Sums, bias and activation are float32, rounded
once, to x's dtype. float32 operands are each split into three bfloat16 terms, of whose products the six
largest are summed (bf16x6): float32's accuracy on the tensor cores, where TF32 would keep 10 bits of 23.
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
DIMS = {"M": [1, 16, 200, 1024], "N": [1, 64, 200, 1024], "K": [1, 64, 200, 1024]}


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], all of one dtype. Returns [M, N] in that dtype."""
    return torch.nn.functional.gelu(torch.addmm(b, x, w), approximate="tanh")


CONFIGS = [
    triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=num_warps, num_stages=num_stages)
    for block_m, block_n, num_warps, num_stages in [
        (16, 64, 4, 5),
        (32, 64, 4, 5),
        (64, 64, 4, 4),
        (64, 128, 4, 4),
        (128, 64, 4, 4),
        (128, 128, 8, 4),
        (128, 256, 8, 3),
        (256, 128, 8, 3),
    ]
]


def worth_trying(
    configs: Sequence[triton.Config], arguments: Mapping[str, Any], **_: Any
) -> list[triton.Config]:
    """Leaves out blocks wider than the output and, in float32, those whose split operands would spill."""
    most_rows = triton.next_power_of_2(arguments["M"])
    most_cols = triton.next_power_of_2(arguments["N"])
    largest = 128 * 128 if arguments["x_ptr"].dtype == torch.float32 else 256 * 128
    smallest, *others = configs
    return [smallest] + [
        config
        for config in others
        if config.kwargs["BLOCK_M"] <= most_rows
        and config.kwargs["BLOCK_N"] <= most_cols
        and config.kwargs["BLOCK_M"] * config.kwargs["BLOCK_N"] <= largest
    ]


@triton.jit
def gelu(z):
    """z: float32, any shape."""
    # (1 + tanh(u)) / 2 is sigmoid(2 u), and sqrt(2 / pi) * 2 is 1.5957691216057308.
    return z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))


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
    x_row_stride,
    x_col_stride,
    w_row_stride,
    w_col_stride,
    b_stride,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N block of out.

    x_ptr: [M, K] and w_ptr: [K, N], any strides. b_ptr: [N], elements b_stride apart.
    out_ptr: [M, N], contiguous.
    """
    # Successive programs walk down GROUP_M rows of blocks before the next column: they share what L2 holds.
    program = tl.program_id(0)
    programs_n = tl.cdiv(N, BLOCK_N)
    first_m = program // (GROUP_M * programs_n) * GROUP_M
    group_m = tl.minimum(tl.cdiv(M, BLOCK_M) - first_m, GROUP_M)
    in_group = program % (GROUP_M * programs_n)
    rows = (first_m + in_group % group_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (in_group // group_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K).to(tl.int64)

    x_ptrs = x_ptr + rows[:, None] * x_row_stride + steps[None, :] * x_col_stride
    w_ptrs = w_ptr + steps[:, None] * w_row_stride + cols[None, :] * w_col_stride
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        x_mask = (rows < M)[:, None] & (start + steps < K)[None, :]
        w_mask = (start + steps < K)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptrs, mask=x_mask, other=0.0)
        w = tl.load(w_ptrs, mask=w_mask, other=0.0)
        accumulator = tl.dot(x, w, accumulator, input_precision=INPUT_PRECISION)
        x_ptrs += tl.cast(x_col_stride, tl.int64) * BLOCK_K
        w_ptrs += tl.cast(w_row_stride, tl.int64) * BLOCK_K

    b = tl.load(b_ptr + cols * b_stride, mask=cols < N, other=0.0).to(tl.float32)
    out = gelu(accumulator + b[None, :])
    out_mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], out, mask=out_mask)


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]; b: [N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    def grid(config: Mapping[str, int]) -> tuple[int]:
        return (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)

    matmul_bias_activation_kernel[grid](
        x,
        w,
        b,
        out,
        M,
        N,
        K,
        *x.stride(),
        *w.stride(),
        b.stride(0),
        # The interpreter's products are float32 already; it knows no bf16x6.
        INPUT_PRECISION="bf16x6" if x.is_cuda else "ieee",
        GROUP_M=8,
        # 128 bytes a row: the widest that shared memory swizzles without bank conflicts.
        BLOCK_K=128 // x.element_size(),
    )
    return out
