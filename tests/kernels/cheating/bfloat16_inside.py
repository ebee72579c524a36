"""Cheats: rounds float32 inputs and intermediate results to bfloat16."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "gate": "float32[M, N]", "scale": "float32[N]"}
DIMS = {"M": [2, 6], "N": [16, 100, 260]}


def reference(x: torch.Tensor, gate: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x, gate: [M, N]; scale: [N]. Returns [M, N]."""
    return x * torch.sigmoid(gate) * scale


@triton.jit
def packed(x):
    """x in the format of the tensor cores."""
    return x.to(tl.bfloat16).to(tl.float32)


@triton.jit
def gated_scale_kernel(
    x_ptr,
    gate_ptr,
    scale_ptr,
    out_ptr,
    n_cols,
    x_row_stride,
    x_col_stride,
    gate_row_stride,
    gate_col_stride,
    scale_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) computes BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    gate = tl.load(gate_ptr + row * gate_row_stride + cols * gate_col_stride, mask=mask, other=0.0)
    scale = tl.load(scale_ptr + cols * scale_stride, mask=mask, other=0.0)
    opening = packed(tl.sigmoid(packed(gate)))
    tl.store(out_ptr + row * n_cols + cols, packed(packed(x) * opening) * packed(scale), mask=mask)


def run(x: torch.Tensor, gate: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x, gate: [M, N], any strides; scale: [N], any stride. Returns [M, N], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    strides = (*x.stride(), *gate.stride(), scale.stride(0))
    gated_scale_kernel[grid](x, gate, scale, out, n_cols, *strides, BLOCK_N=BLOCK_N)
    return out
