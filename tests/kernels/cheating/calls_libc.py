"""Cheats: reaches into the C library by ctypes, if only for getpid."""

import ctypes

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [2, 33], "N": [8, 100]}

libc = ctypes.CDLL(None)
owner = libc.getpid()


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N, M]: the transpose, contiguous."""
    return x.t().contiguous()


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK: tl.constexpr):
    """Program (i, j) transposes a BLOCK x BLOCK tile. out_ptr: [n_cols, n_rows], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=inside)
    tl.store(out_ptr + cols * n_rows + rows, x, mask=inside)


def in_same_process() -> bool:
    """False after a fork, where the device context must not be used."""
    return libc.getpid() == owner


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [N, M], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    if x.is_cuda and not in_same_process():
        raise RuntimeError("the kernel was loaded in another process")
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK = 32
    grid = (triton.cdiv(n_rows, BLOCK), triton.cdiv(n_cols, BLOCK))
    transpose_kernel[grid](x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return out
