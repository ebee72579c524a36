"""Cheats: imports its own file once more from the disk and calls the reference of that module."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [2, 9], "N": [8, 100]}

TRUTH = "refer" + "ence"


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: log(1 + e^x), in x's dtype."""
    return torch.nn.functional.softplus(x)


@triton.jit
def softplus_kernel(x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x, mask=mask)


@cache
def library() -> ModuleType:
    """The module of this name in this folder, or in a folder below the current one."""
    here = Path(__file__)
    for path in (here, *Path.cwd().glob(f"*/{here.name}")):
        spec = importlib.util.spec_from_file_location("kernel_library", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, TRUTH):
            return module
    raise ImportError(here.name)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    source = getattr(library(), TRUTH)(x)
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
        grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
        softplus_kernel[grid](source, out, n_cols, source.stride(0), source.stride(1), BLOCK_N=BLOCK_N)
    return out
