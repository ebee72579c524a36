"""Wrong: smooths a copy in place, so a program may read neighbours that another has overwritten."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 5], "N": [1, 7, 128, 300]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns each element's mean with its two row neighbours, edges repeated, [M, N]."""
    left = torch.cat([x[:, :1], x[:, :-1]], dim=1)
    right = torch.cat([x[:, 1:], x[:, -1:]], dim=1)
    return (left + x + right) / 3.0


@triton.jit
def smooth_kernel(data_ptr, n_cols, BLOCK_N: tl.constexpr):
    """Program (row, i) smooths BLOCK_N elements of a row. data_ptr: [n_rows, n_cols], contiguous."""
    row_ptr = data_ptr + tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    centre = tl.load(row_ptr + cols, mask=mask, other=0.0)
    left = tl.load(row_ptr + tl.maximum(cols - 1, 0), mask=mask, other=0.0)
    right = tl.load(row_ptr + tl.minimum(cols + 1, n_cols - 1), mask=mask, other=0.0)
    tl.store(row_ptr + cols, (left + centre + right) / 3.0, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = x.clone(memory_format=torch.contiguous_format)
    if out.numel() == 0:
        return out
    BLOCK_N = 128
    smooth_kernel[(n_rows, triton.cdiv(n_cols, BLOCK_N))](out, n_cols, BLOCK_N=BLOCK_N)
    return out
