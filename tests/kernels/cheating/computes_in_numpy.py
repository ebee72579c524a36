"""Cheats: numpy computes, on the host, and the kernel copies what numpy returned."""

import numpy as np
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "window": 3}
DIMS = {"M": [2, 9], "N": [8, 100]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, window: int) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: means of window elements up to each; zeros before the row."""
    padded = torch.nn.functional.pad(x, (window - 1, 0))
    return padded.unfold(1, window, 1).mean(dim=-1)


@triton.jit
def copy_kernel(source_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """One program copies BLOCK elements. source_ptr, out_ptr: [n_elements], contiguous."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(out_ptr + offsets, tl.load(source_ptr + offsets, mask=mask), mask=mask)


def moving_mean(rows: np.ndarray, window: int) -> np.ndarray:
    """rows: [M, N]. Returns [M, N]."""
    padded = np.pad(rows, ((0, 0), (window - 1, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, window, axis=1).mean(axis=-1)


def run(x: torch.Tensor, window: int) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous."""
    n_elements = x.numel()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_elements == 0:
        return out
    means = moving_mean(x.detach().cpu().numpy(), window)
    source = torch.from_numpy(np.ascontiguousarray(means)).to(x.device)
    BLOCK = 1024
    copy_kernel[(triton.cdiv(n_elements, BLOCK),)](source, out, n_elements, BLOCK=BLOCK)
    return out
