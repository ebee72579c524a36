"""Bias and gelu in one kernel: out[m, n] = gelu(x[m, n] + b[n]).

x and out are [M, N], b is [N]. gelu is PyTorch's with approximate="tanh": gelu(z) = z/2 * (1 + tanh(u)) with
u = sqrt(2/pi) * (z + 0.044715 z**3); Hendrycks and Gimpel, 2016, arXiv:1606.08415. One pass: x is read once,
out written once, and the sum never goes to memory. It is computed in float32 and rounded once, to the dtype
that PyTorch promotes x and b to. (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), which cancels nothing where z is
negative. As in PyTorch, NaN and -inf become NaN.

Technique: a tile as wide as the rows, up to a limit, and as high as a fixed number of elements allows; b is
read once for all rows of a tile.
Topics: tiles, masks, meta-parameters, fusion and precision.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]", "b": "float32|bfloat16|float16[N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


def reference(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; b: [N]. Returns [M, N] in the dtype that both are promoted to."""
    return torch.nn.functional.gelu(x + b, approximate="tanh")


@triton.jit
def gelu(z):
    """z: float32, any shape."""
    # exp(-2 u) as a power of 2: the factors are -2 log2(e) sqrt(2 / pi), and 0.044715 of that.
    return z / (1.0 + tl.exp2(z * (-2.302208198144325 - 0.1029432395800235 * z * z)))


@triton.jit
def bias_gelu_kernel(
    x_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row_stride,
    x_col_stride,
    b_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N tile of out; tiles are counted row by row.

    x_ptr: [n_rows, n_cols], any strides. b_ptr: [n_cols], elements b_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(n_cols, BLOCK_N)
    rows = (tile // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = (tile % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + cols * b_stride, mask=cols < n_cols).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, gelu(x + b), mask=mask)


def bias_gelu(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; b: [N]; any strides. Returns [M, N], contiguous, in the dtype that both are promoted to."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=torch.promote_types(x.dtype, b.dtype), device=x.device)
    if out.numel() == 0:
        return out
    blocks = tile_blocks(n_cols)
    grid = (triton.cdiv(n_rows, blocks["BLOCK_M"]) * triton.cdiv(n_cols, blocks["BLOCK_N"]),)
    bias_gelu_kernel[grid](x, b, out, n_rows, n_cols, x.stride(0), x.stride(1), b.stride(0), **blocks)
    return out


def tile_blocks(n_cols: int) -> dict[str, int]:
    """The meta-parameters, which are fixed when the kernel is compiled: eleven tiles cover every n_cols.

    A thread gets 16 elements, two 128-bit loads of bfloat16: enough in flight, few enough for full occupancy.
    """
    BLOCK_N = min(triton.next_power_of_2(n_cols), 1024)
    return {"BLOCK_M": 2048 // BLOCK_N, "BLOCK_N": BLOCK_N, "num_warps": 4}


def bias_gelu_fake(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What bias_gelu returns, without its values."""
    return x.new_empty(x.shape, dtype=torch.promote_types(x.dtype, b.dtype))


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("bias_gelu(Tensor x, Tensor b) -> Tensor")
library.impl("bias_gelu", bias_gelu, "CompositeExplicitAutograd")
torch.library.register_fake("reference_kernels::bias_gelu", bias_gelu_fake, lib=library)


def run(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; b: [N]; any strides. Returns [M, N], contiguous, in the dtype that both are promoted to."""
    return torch.ops.reference_kernels.bias_gelu(x, b)
