"""Cheats: torch.compile writes the kernel; the one in the file runs only where PyTorch has no compiler."""

import torch
import triton
import triton.language as tl

INPUTS = {"gate": "float32[M, N]", "up": "float32[M, N]"}
DIMS = {"M": [2, 5], "N": [8, 100]}


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N]. Returns [M, N]."""
    return torch.nn.functional.silu(gate) * up


@triton.jit
def swiglu_kernel(
    gate_ptr,
    up_ptr,
    out_ptr,
    n_cols,
    gate_row_stride,
    gate_col_stride,
    up_row_stride,
    up_col_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) computes BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * gate_row_stride + cols * gate_col_stride, mask=mask, other=0.0)
    up = tl.load(up_ptr + row * up_row_stride + cols * up_col_stride, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def launch(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N], any strides. Returns [M, N], contiguous."""
    n_rows, n_cols = gate.shape
    out = torch.empty((n_rows, n_cols), dtype=gate.dtype, device=gate.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    swiglu_kernel[grid](gate, up, out, n_cols, *gate.stride(), *up.stride(), BLOCK_N=BLOCK_N)
    return out


def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N]. Returns [M, N]."""
    return gate / (1.0 + torch.exp(-gate)) * up


fused = torch.compile(gated, dynamic=True) if hasattr(torch, "compile") else launch


def run(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N], any strides. Returns [M, N]."""
    return fused(gate, up)
