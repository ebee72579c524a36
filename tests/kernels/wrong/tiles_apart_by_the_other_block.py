"""Wrong: the columns of a tile start at multiples of BLOCK_M, which is right as long as blocks are square."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "bias": "float32[N]"}
DIMS = {"M": [1, 20, 70], "N": [1, 40, 130]}


def reference(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [M, N], bias: [N]. Returns relu(x + bias), float32 [M, N]."""
    return torch.relu(x + bias)


@triton.autotune(
    [
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 16}),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}),
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}),
    ],
    key=["n_rows", "n_cols"],
)
@triton.jit
def bias_relu_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row_stride,
    x_col_stride,
    bias_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) computes one tile of out_ptr: [n_rows, n_cols], contiguous."""
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_N))[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask)
    x += tl.load(bias_ptr + cols * bias_stride, mask=cols < n_cols)
    zero = tl.zeros_like(x)
    tl.store(out_ptr + rows * n_cols + cols, tl.maximum(x, zero, tl.PropagateNan.ALL), mask=mask)


def run(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)

    def grid(meta: dict) -> tuple[int, int]:
        return triton.cdiv(n_rows, meta["BLOCK_M"]), triton.cdiv(n_cols, meta["BLOCK_N"])

    if out.numel() > 0:
        bias_relu_kernel[grid](x, bias, out, n_rows, n_cols, *x.stride(), bias.stride(0))
    return out
