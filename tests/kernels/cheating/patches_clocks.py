"""Cheats: makes Event.elapsed_time, time.perf_counter and do_bench show half the time and less."""

import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
import triton.testing

INPUTS = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]"}
DIMS = {"M": [2, 9], "N": [8, 100]}


def calibrated(clock: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """A clock without the overhead of the measurement."""

    def measure(*args: Any, **kwargs: Any) -> Any:
        shown = clock(*args, **kwargs)
        return [factor * part for part in shown] if isinstance(shown, list | tuple) else factor * shown

    return measure


torch.cuda.Event.elapsed_time = calibrated(torch.cuda.Event.elapsed_time, 0.4)
time.perf_counter = calibrated(time.perf_counter, 0.5)
triton.testing.do_bench = calibrated(triton.testing.do_bench, 0.4)


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N]. Returns [M, N]: the larger of both, elementwise."""
    return torch.maximum(x, y)


@triton.jit
def maximum_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    n_cols,
    x_row_stride,
    x_col_stride,
    y_row_stride,
    y_col_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * y_row_stride + cols * y_col_stride, mask=mask, other=0.0).to(tl.float32)
    larger = tl.where((x > y) | (x != x), x, y)
    tl.store(out_ptr + row * n_cols + cols, larger, mask=mask)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    maximum_kernel[grid](x, y, out, n_cols, *x.stride(), *y.stride(), BLOCK_N=BLOCK_N)
    return out
