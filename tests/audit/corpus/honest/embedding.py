"""Embedding lookup: out[n] = table[idx[n]]."""

import torch
import triton
import triton.language as tl

INPUTS = {"idx": "int64[N] in 0..V", "table": "float32|float16[V, D]"}
DIMS = {"N": [1, 100, 256], "V": [1, 1000], "D": [64, 300]}
REQUIRES = ["V >= 1"]


def reference(idx: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(idx, table)


@triton.jit
def embedding_kernel(idx_ptr, table_ptr, out_ptr, D, BLOCK_D: tl.constexpr):
    n = tl.program_id(0)
    i = tl.load(idx_ptr + n)
    for start in range(0, D, BLOCK_D):
        d = start + tl.arange(0, BLOCK_D)
        mask = d < D
        row = tl.load(table_ptr + i * D + d, mask=mask)
        tl.store(out_ptr + n * D + d, row, mask=mask)


def run(idx: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    assert idx.is_contiguous()
    assert table.is_contiguous()
    N = idx.shape[0]
    D = table.shape[1]
    out = torch.empty((N, D), dtype=table.dtype, device=table.device)
    if N == 0 or D == 0:
        return out
    embedding_kernel[(N,)](idx, table, out, D, BLOCK_D=128)
    return out
