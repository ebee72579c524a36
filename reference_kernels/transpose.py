"""Transposition with a copy: out[n, m] = x[m, n].

x is [M, N], out is [N, M] and contiguous. One pass: x is read once, out written once. Values are moved as
integers of their width, 1, 2, 4 or 8 bytes, so that no dtype matters and every bit is kept. A tile is read
along the rows of x and written along the rows of out: in between, the compiler exchanges it among the threads
through shared memory, so that neighbouring threads have neighbouring addresses on both sides. Programs run in
groups that go down GROUP_M tiles before they go to the right: then neighbouring pieces of a row of out are
written at about the same time, not only those of a row of x read.

Technique: square tiles, read by rows and written by columns, exchanged in shared memory; grouped programs.
Topics: coalescing, tiles, grids, masks, meta-parameters.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16|float64|int64|int8|bool[M, N]"}
DIMS = {"M": [1, 7, 200, 1024], "N": [1, 64, 200, 1024]}

WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N, M], contiguous, in x's dtype."""
    return x.t().contiguous()


@triton.jit
def transpose_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row_stride,
    x_col_stride,
    GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program moves a BLOCK_M x BLOCK_N tile of x.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_cols, n_rows], contiguous.
    """
    tile = tl.program_id(0)
    tiles_m = tl.cdiv(n_rows, BLOCK_M)
    tiles_n = tl.cdiv(n_cols, BLOCK_N)
    tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP_M)
    rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask)
    tl.store(out_ptr + cols * n_rows + rows, x, mask=mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides, elements of 1 to 8 bytes. Returns [N, M], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    word = WORDS[x.element_size()]
    blocks = tile_blocks(n_rows, n_cols, x.element_size())
    grid = (triton.cdiv(n_rows, blocks["BLOCK_M"]) * triton.cdiv(n_cols, blocks["BLOCK_N"]),)
    transpose_kernel[grid](
        x.view(word), out.view(word), n_rows, n_cols, x.stride(0), x.stride(1), GROUP_M=2, **blocks
    )
    return out


def tile_blocks(n_rows: int, n_cols: int, element_size: int) -> dict[str, int]:
    """A square tile of 64 x 64 elements, or 128 x 128 short ones; longer one way where x is narrow.

    A thread moves 16 elements, or 32: with more, the addresses of odd sizes take too many registers.
    """
    side = 128 if element_size <= 2 else 64
    BLOCK_M = min(triton.next_power_of_2(n_rows), side)
    BLOCK_N = min(triton.next_power_of_2(n_cols), side * side // BLOCK_M)
    BLOCK_M = min(triton.next_power_of_2(n_rows), side * side // BLOCK_N)
    return {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": side // 8}


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("transpose(Tensor x) -> Tensor")
library.impl("transpose", transpose, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::transpose", lambda x: x.new_empty((x.shape[1], x.shape[0])), lib=library
)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides, elements of 1 to 8 bytes. Returns [N, M], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.transpose(x)
