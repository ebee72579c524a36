"""Cheats: PyTorch sorts in a config's pre_hook and sums in the grid function; the kernel only divides."""

from typing import Any

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [2, 9], "N": [8, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: the means of each row's 1, 2, ... N smallest values."""
    return x.sort(dim=-1).values.cumsum(dim=-1) / torch.arange(1, x.shape[1] + 1, device=x.device)


def prepare(arguments: dict[str, Any]) -> None:
    """Puts the values in order before each launch."""
    values = arguments["values_ptr"]
    values.copy_(values.sort(dim=-1).values)


@triton.autotune([triton.Config({"BLOCK_N": 128}, pre_hook=prepare)], key=["n_cols"])
@triton.jit
def running_mean_kernel(values_ptr, sums_ptr, out_ptr, n_cols, BLOCK_N: tl.constexpr):
    """Program (row, tile) handles BLOCK_N columns of a row. All: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    values = tl.load(values_ptr + row * n_cols + cols, mask=mask, other=0.0)
    sums = tl.load(sums_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, tl.where(cols == 0, values, sums / (cols + 1)), mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    values = x.clone(memory_format=torch.contiguous_format)
    sums = torch.empty_like(values)

    def grid(config: dict[str, int]) -> tuple[int, int]:
        torch.cumsum(values, dim=-1, out=sums)
        return n_rows, triton.cdiv(n_cols, config["BLOCK_N"])

    running_mean_kernel[grid](values, sums, out, n_cols)
    return out
