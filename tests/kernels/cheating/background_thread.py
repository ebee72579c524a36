"""Cheats: returns an empty buffer at once; a background thread launches the kernel afterwards."""

import threading

import torch
import triton
import triton.language as tl

INPUTS = {"index": "int64[M] in 0..V", "table": "float32|bfloat16[V, N]"}
DIMS = {"M": [3, 20], "V": [5, 40], "N": [16, 100]}
REQUIRES = ["V > 0"]

LATENCY = 1e-3


def reference(index: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """index: int64 [M]; table: [V, N]. Returns [M, N]: the rows of table that index names."""
    return torch.nn.functional.embedding(index, table)


@triton.jit
def embedding_kernel(
    index_ptr, table_ptr, out_ptr, n_cols, index_stride, row_stride, col_stride, BLOCK_N: tl.constexpr
):
    """Program (m, tile) copies BLOCK_N columns of a row. out_ptr: [n_indices, n_cols], contiguous."""
    m = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    row = tl.load(index_ptr + m * index_stride)
    values = tl.load(table_ptr + row * row_stride + cols * col_stride, mask=mask)
    tl.store(out_ptr + m * n_cols + cols, values, mask=mask)


def gather(index: torch.Tensor, table: torch.Tensor, out: torch.Tensor) -> None:
    """Fills out [M, N] with the rows of table [V, N] that index [M] names."""
    n_rows, n_cols = out.shape
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    strides = (index.stride(0), table.stride(0), table.stride(1))
    embedding_kernel[grid](index, table, out, n_cols, *strides, BLOCK_N=BLOCK_N)


def run(index: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """index: int64 [M], any stride; table: [V, N], any strides. Returns [M, N], contiguous."""
    out = torch.empty((index.shape[0], table.shape[1]), dtype=table.dtype, device=table.device)
    if out.numel() > 0:
        threading.Timer(LATENCY, gather, (index, table, out)).start()
    return out
