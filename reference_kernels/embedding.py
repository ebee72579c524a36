"""Embedding: out[m, n] = table[index[m], n].

table is [V, N], index is int64 or int32 [M] in 0..V, out is [M, N]. One pass: each row asked for is read and
written once, in table's dtype. An index out of range is an error of the caller: with TRITON_DEBUG=1 the
kernel stops at it, without it reads what lies there.

The gradient of a row of the table is the sum of dout over the places that asked for it: dtable[v, n] = sum of
dout[m, n] where index[m] = v. It is added up by atomics, always in float32, so index need not be sorted, and
a row that most places ask for still keeps every program busy. Of a large table of 16 bits only the rows that
were asked for are added up, each in the place of the last that asked for it, and then rounded in one pass
that writes the other rows' zeros as well. The price of atomics: sums are taken in the order of chance, so
their last bits differ from run to run.

Technique: a gather of rows, whose gradient is a scatter by relaxed float32 atomics into a compact buffer.
Topics: coalescing, masks, debugging, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"table": "float32|bfloat16|float16[V, N]", "index": "int64|int32[M] in 0..V"}
DIMS = {"V": [1, 10, 1000], "N": [1, 64, 1000, 4096], "M": [1, 7, 300]}
# Of a table without columns, PyTorch's own gradient reads out of bounds on a GPU (pytorch/pytorch#189668).
REQUIRES = ["V >= 1", "N >= 1"]

TILE = 2048


def reference(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """table: [V, N]; index: int64 or int32 [M]. Returns [M, N] in table's dtype."""
    return torch.nn.functional.embedding(index, table)


@triton.jit
def embedding_kernel(
    table_ptr,
    index_ptr,
    out_ptr,
    n_entries,
    n_rows,
    n_cols,
    table_row_stride,
    table_col_stride,
    index_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) copies BLOCK_N columns of BLOCK_M rows.

    table_ptr: [n_entries, n_cols], any strides. index_ptr: [n_rows], elements index_stride apart.
    out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    entries = tl.load(index_ptr + rows * index_stride, mask=rows < n_rows, other=0).to(tl.int64)
    tl.device_assert((entries >= 0) & (entries < n_entries), "index out of range")
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    values = tl.load(
        table_ptr + entries[:, None] * table_row_stride + cols[None, :] * table_col_stride, mask=mask
    )
    tl.store(out_ptr + rows[:, None] * n_cols + cols[None, :], values, mask=mask)


@triton.jit
def embedding_places_kernel(index_ptr, place_ptr, n_entries, n_rows, index_stride, BLOCK_M: tl.constexpr):
    """One program looks at BLOCK_M indices for the last place that asks for each entry.

    index_ptr: [n_rows], elements index_stride apart. place_ptr: int32 [n_entries], -1 at first.
    """
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    entries = tl.load(index_ptr + rows.to(tl.int64) * index_stride, mask=rows < n_rows, other=0).to(tl.int64)
    tl.device_assert((entries >= 0) & (entries < n_entries), "index out of range")
    tl.atomic_max(place_ptr + entries, rows, mask=rows < n_rows, sem="relaxed")


@triton.jit
def embedding_backward_kernel(
    dout_ptr,
    index_ptr,
    place_ptr,
    total_ptr,
    n_entries,
    n_rows,
    n_cols,
    dout_row_stride,
    dout_col_stride,
    index_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) adds BLOCK_N columns of BLOCK_M rows to the totals of the entries that they came from.

    dout_ptr: [n_rows, n_cols], any strides. index_ptr: [n_rows], elements index_stride apart. place_ptr:
    int32 [n_entries], the row of total_ptr for each entry, or None where that is the entry's own number.
    total_ptr: float32 [n_rows or n_entries, n_cols], contiguous, zeros at first.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    entries = tl.load(index_ptr + rows * index_stride, mask=rows < n_rows, other=0).to(tl.int64)
    tl.device_assert((entries >= 0) & (entries < n_entries), "index out of range")
    if place_ptr is not None:
        entries = tl.load(place_ptr + entries, mask=rows < n_rows, other=0).to(tl.int64)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    dout = tl.load(
        dout_ptr + rows[:, None] * dout_row_stride + cols[None, :] * dout_col_stride, mask=mask
    ).to(tl.float32)
    # The order of additions is free, so nothing else in memory has to wait for them.
    tl.atomic_add(total_ptr + entries[:, None] * n_cols + cols[None, :], dout, mask=mask, sem="relaxed")


@triton.jit
def embedding_totals_kernel(
    total_ptr, place_ptr, dtable_ptr, n_entries, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Program (i, j) rounds BLOCK_N columns of BLOCK_M entries' totals; of what nobody asked for they are 0.

    total_ptr: float32 [n_rows, n_cols]. place_ptr: int32 [n_entries], as embedding_places_kernel leaves it.
    dtable_ptr: [n_entries, n_cols]. All are contiguous.
    """
    entries = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    place = tl.load(place_ptr + entries, mask=entries < n_entries, other=-1).to(tl.int64)
    mask = (entries < n_entries)[:, None] & (cols < n_cols)[None, :]
    totals = tl.load(
        total_ptr + place[:, None] * n_cols + cols[None, :], mask=mask & (place >= 0)[:, None], other=0.0
    )
    tl.store(dtable_ptr + entries[:, None] * n_cols + cols[None, :], totals, mask=mask, cache_modifier=".cs")


def embedding(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """table: [V, N], any strides; index: int64 or int32 [M], any stride. Returns [M, N], contiguous."""
    n_entries, n_cols = table.shape
    n_rows = index.shape[0]
    out = torch.empty((n_rows, n_cols), dtype=table.dtype, device=table.device)
    if out.numel() == 0:
        return out
    strides = (table.stride(0), table.stride(1), index.stride(0))
    grid, blocks = grid_and_blocks(n_rows, n_cols)
    embedding_kernel[grid](table, index, out, n_entries, n_rows, n_cols, *strides, **blocks)
    return out


def embedding_backward(dout: torch.Tensor, index: torch.Tensor, n_entries: int) -> torch.Tensor:
    """dout: [M, N]; index: [M], any strides. Returns the table's gradient, [V, N], contiguous."""
    n_rows, n_cols = dout.shape
    if dout.numel() == 0:
        return torch.zeros((n_entries, n_cols), dtype=dout.dtype, device=dout.device)
    is_compact = dout.dtype != torch.float32 and n_entries > n_rows
    places = None
    if is_compact:
        places = torch.full((n_entries,), -1, dtype=torch.int32, device=dout.device)
        grid = (triton.cdiv(n_rows, 256),)
        embedding_places_kernel[grid](index, places, n_entries, n_rows, index.stride(0), BLOCK_M=256)
    totals = torch.zeros(
        (n_rows if is_compact else n_entries, n_cols), dtype=torch.float32, device=dout.device
    )
    grid, blocks = grid_and_blocks(n_rows, n_cols)
    embedding_backward_kernel[grid](
        dout, index, places, totals, n_entries, n_rows, n_cols, *dout.stride(), index.stride(0), **blocks
    )
    if not is_compact:
        return totals.to(dout.dtype)
    dtable = torch.empty((n_entries, n_cols), dtype=dout.dtype, device=dout.device)
    grid, blocks = grid_and_blocks(n_entries, n_cols)
    embedding_totals_kernel[grid](totals, places, dtable, n_entries, n_cols, **blocks)
    return dtable


def grid_and_blocks(n_rows: int, n_cols: int) -> tuple[tuple[int, int], dict[str, int]]:
    """Programs of TILE elements: whole rows, or a part of one."""
    BLOCK_N = min(triton.next_power_of_2(n_cols), TILE)
    BLOCK_M = TILE // BLOCK_N
    grid = (triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N))
    return grid, {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}


def save_for_backward(ctx, inputs, output):
    """Keeps index and the table's length: no value of the table is needed."""
    table, index = inputs
    ctx.save_for_backward(index)
    ctx.n_entries = table.shape[0]


@torch.autograd.function.once_differentiable
def backward(ctx, dout):
    """The gradients of table and index, as autograd asks for them; index has none."""
    return torch.ops.reference_kernels.embedding_backward(dout, *ctx.saved_tensors, ctx.n_entries), None


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("embedding(Tensor table, Tensor index) -> Tensor")
library.define("embedding_backward(Tensor dout, Tensor index, SymInt n_entries) -> Tensor")
library.impl("embedding", embedding, "CompositeExplicitAutograd")
library.impl("embedding_backward", embedding_backward, "CompositeExplicitAutograd")
EMBEDDING, EMBEDDING_BACKWARD = "reference_kernels::embedding", "reference_kernels::embedding_backward"
torch.library.register_fake(
    EMBEDDING, lambda table, index: table.new_empty((index.shape[0], table.shape[1])), lib=library
)
torch.library.register_fake(
    EMBEDDING_BACKWARD,
    lambda dout, index, n_entries: dout.new_empty((n_entries, dout.shape[1])),
    lib=library,
)
torch.library.register_autograd(EMBEDDING, backward, setup_context=save_for_backward, lib=library)


def run(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """table: [V, N], any strides; index: int64 or int32 [M], any stride. Returns [M, N], contiguous."""
    return torch.ops.reference_kernels.embedding(table, index)
