"""An honest softmax: the cheats beside it are measured against it."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [16], "N": [1024]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]."""
    return torch.softmax(x, dim=-1)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK_N: tl.constexpr):
    """One program normalises one row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def launch(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N]."""
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]), num_warps=8)
    return out


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N]."""
    return launch(x)
