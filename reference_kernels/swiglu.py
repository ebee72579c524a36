"""SwiGLU, a gated activation: out[m, n] = silu(a[m, n]) * b[m, n], silu(z) = z / (1 + exp(-z)).

a, b and out are [M, N]; Shazeer, 2020, arXiv:2002.05202. One pass: each input is read once, out written once.
a and b are often the halves of one [M, 2 N] product: they may have any strides and need no copy. Everything
is computed in float32 and rounded once, to the dtype that PyTorch promotes a and b to. As in PyTorch, silu
of -inf is NaN.

The gradients, with s = 1 / (1 + exp(-a)): da = dout * b * (s + a * s * (1 - s)) and db = dout * a * s. One
kernel computes both, and s again: that is cheaper than to write s in the forward pass and to read it back.

Technique: a tile of elements for each program; the gradients recompute the sigmoid instead of keeping it.
Topics: tiles, masks, fusion and precision, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32|bfloat16|float16[M, N]", "b": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a, b: [M, N]. Returns [M, N] in the dtype that both are promoted to."""
    return torch.nn.functional.silu(a) * b


@triton.jit
def tile_of(program, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Rows [BLOCK_M, 1] and columns [1, BLOCK_N], int64, of a tile; tiles are counted row by row."""
    tiles_n = tl.cdiv(n_cols, BLOCK_N)
    rows = (program // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = (program % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    return rows, cols


@triton.jit
def swiglu_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_cols,
    a_row_stride,
    a_col_stride,
    b_row_stride,
    b_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N tile of out.

    a_ptr, b_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.
    """
    rows, cols = tile_of(tl.program_id(0), n_cols, BLOCK_M, BLOCK_N)
    mask = (rows < n_rows) & (cols < n_cols)
    a = tl.load(a_ptr + rows * a_row_stride + cols * a_col_stride, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + rows * b_row_stride + cols * b_col_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, a * tl.sigmoid(a) * b, mask=mask)


@triton.jit
def swiglu_backward_kernel(
    dout_ptr,
    a_ptr,
    b_ptr,
    da_ptr,
    db_ptr,
    n_rows,
    n_cols,
    dout_row_stride,
    dout_col_stride,
    a_row_stride,
    a_col_stride,
    b_row_stride,
    b_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N tile of da and of db.

    dout_ptr, a_ptr, b_ptr: [n_rows, n_cols], any strides. da_ptr, db_ptr: [n_rows, n_cols], contiguous.
    """
    rows, cols = tile_of(tl.program_id(0), n_cols, BLOCK_M, BLOCK_N)
    mask = (rows < n_rows) & (cols < n_cols)
    dout = tl.load(dout_ptr + rows * dout_row_stride + cols * dout_col_stride, mask=mask).to(tl.float32)
    a = tl.load(a_ptr + rows * a_row_stride + cols * a_col_stride, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + rows * b_row_stride + cols * b_col_stride, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(a)
    silu = a * sigmoid
    tl.store(da_ptr + rows * n_cols + cols, dout * b * (sigmoid + silu * (1 - sigmoid)), mask=mask)
    tl.store(db_ptr + rows * n_cols + cols, dout * silu, mask=mask)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a, b: [M, N], any strides. Returns [M, N], contiguous, in the dtype that both are promoted to."""
    n_rows, n_cols = a.shape
    out = torch.empty((n_rows, n_cols), dtype=torch.promote_types(a.dtype, b.dtype), device=a.device)
    if out.numel() > 0:
        grid, blocks = tiles(n_rows, n_cols)
        swiglu_kernel[grid](
            a, b, out, n_rows, n_cols, a.stride(0), a.stride(1), b.stride(0), b.stride(1), **blocks
        )
    return out


def swiglu_backward(
    dout: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """dout, a, b: [M, N], any strides. Returns the gradients of a and b, [M, N], contiguous."""
    n_rows, n_cols = a.shape
    da = torch.empty((n_rows, n_cols), dtype=a.dtype, device=a.device)
    db = torch.empty((n_rows, n_cols), dtype=b.dtype, device=b.device)
    if da.numel() > 0:
        grid, blocks = tiles(n_rows, n_cols)
        strides = (*dout.stride(), *a.stride(), *b.stride())
        swiglu_backward_kernel[grid](dout, a, b, da, db, n_rows, n_cols, *strides, **blocks)
    return da, db


def tiles(n_rows: int, n_cols: int) -> tuple[tuple[int], dict[str, int]]:
    """The grid of tiles, and a tile: 2048 elements, 16 a thread, as wide as a row where that is possible."""
    BLOCK_N = min(triton.next_power_of_2(n_cols), 1024)
    BLOCK_M = 2048 // BLOCK_N
    grid = (triton.cdiv(n_rows, BLOCK_M) * triton.cdiv(n_cols, BLOCK_N),)
    return grid, {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": 4}


def swiglu_fake(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What swiglu returns, without its values."""
    return a.new_empty(a.shape, dtype=torch.promote_types(a.dtype, b.dtype))


def swiglu_backward_fake(
    dout: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What swiglu_backward returns, without its values."""
    return a.new_empty(a.shape), b.new_empty(b.shape)


def save_for_backward(ctx, inputs, output):
    """Keeps a and b, which exist anyway; out is not needed."""
    ctx.save_for_backward(*inputs)


@torch.autograd.function.once_differentiable
def backward(ctx, dout):
    """The gradients of a and b, as autograd asks for them; they have none of their own."""
    return torch.ops.reference_kernels.swiglu_backward(dout, *ctx.saved_tensors)


class Swiglu(torch.autograd.Function):
    """swiglu without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, a, b):
        """What swiglu returns."""
        output = swiglu(a, b)
        save_for_backward(ctx, (a, b), output)
        return output

    backward = staticmethod(backward)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("swiglu(Tensor a, Tensor b) -> Tensor")
library.define("swiglu_backward(Tensor dout, Tensor a, Tensor b) -> (Tensor, Tensor)")
library.impl("swiglu", swiglu, "CompositeExplicitAutograd")
library.impl("swiglu_backward", swiglu_backward, "CompositeExplicitAutograd")
SWIGLU, SWIGLU_BACKWARD = "reference_kernels::swiglu", "reference_kernels::swiglu_backward"
torch.library.register_fake(SWIGLU, swiglu_fake, lib=library)
torch.library.register_fake(SWIGLU_BACKWARD, swiglu_backward_fake, lib=library)
torch.library.register_autograd(SWIGLU, backward, setup_context=save_for_backward, lib=library)


def is_traced(a: torch.Tensor) -> bool:
    """Whether a has no data to run on, as under torch.compile, or the rules of a class of its own."""
    return torch.compiler.is_compiling() or a.is_meta or type(a) is not torch.Tensor


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a, b: [M, N], any strides. Returns [M, N], contiguous, in the dtype that both are promoted to."""
    if not is_traced(a):
        return Swiglu.apply(a, b)
    return torch.ops.reference_kernels.swiglu(a, b)
