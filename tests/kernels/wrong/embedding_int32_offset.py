"""Wrong: with int32 ids the row offset is an int32 product, which overflows in tables of 2**31 elements."""

import torch
import triton
import triton.language as tl

INPUTS = {"ids": "int32|int64[M] in 0..V", "table": "float32|bfloat16|float16[V, D]"}
DIMS = {"M": [1, 9, 50], "V": [1, 10, 100, 2**26], "D": [1, 16, 70]}
REQUIRES = ["V > 0"]


def reference(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """ids: [M], each in 0..V; table: [V, D]. Returns [M, D] in the table's dtype."""
    return torch.nn.functional.embedding(ids, table)


@triton.jit
def embedding_kernel(
    ids_ptr, table_ptr, out_ptr, width, ids_stride, table_stride_v, table_stride_d, BLOCK_D: tl.constexpr
):
    """Program (i, j) copies the j-th BLOCK_D columns of the row that ids[i] names."""
    position = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = cols < width
    row = tl.load(ids_ptr + position * ids_stride)
    offsets = row * table_stride_v + cols.to(tl.int64) * table_stride_d
    values = tl.load(table_ptr + offsets, mask=mask)
    tl.store(out_ptr + position * width + cols, values, mask=mask)


def run(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    n_ids = ids.shape[0]
    width = table.shape[1]
    out = torch.empty((n_ids, width), dtype=table.dtype, device=table.device)
    if out.numel() == 0:
        return out
    BLOCK_D = min(128, triton.next_power_of_2(width))
    grid = (n_ids, triton.cdiv(width, BLOCK_D))
    embedding_kernel[grid](
        ids, table, out, width, ids.stride(0), table.stride(0), table.stride(1), BLOCK_D=BLOCK_D
    )
    return out
