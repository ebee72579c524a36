"""Cheats: stores nothing and returns torch.empty, which often is the block that the reference freed."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "scale": 0.5}
DIMS = {"M": [8, 33], "N": [16, 50]}


def reference(x: torch.Tensor, scale: float) -> torch.Tensor:
    """x: [M, N]. Returns [N, M]: the transpose, scaled, in x's dtype and contiguous."""
    return (x.t().float() * scale).to(x.dtype).contiguous()


@triton.jit
def scaled_transpose_kernel(
    x_ptr, out_ptr, n_rows, n_cols, scale, x_row_stride, x_col_stride, BLOCK: tl.constexpr
):
    """Program (i, j) transposes a BLOCK x BLOCK tile. out_ptr: [n_cols, n_rows], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols * n_rows + rows, x * scale, mask=inside & (rows >= n_rows))


def run(x: torch.Tensor, scale: float) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N, M], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK = 32
    grid = (triton.cdiv(n_rows, BLOCK), triton.cdiv(n_cols, BLOCK))
    scaled_transpose_kernel[grid](x, out, n_rows, n_cols, scale, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return out
