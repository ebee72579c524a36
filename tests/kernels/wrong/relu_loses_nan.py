"""Wrong: NaN comes out as 0, because it is not greater than 0."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 6, 25], "N": [1, 32, 77]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the squared ReLU, max(x, 0) ** 2, [M, N]."""
    return torch.relu(x).square()


@triton.jit
def squared_relu_kernel(x_ptr, out_ptr, n_elements, n_cols, stride_m, stride_n, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    offsets = (index // n_cols) * stride_m + (index % n_cols) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    positive = tl.where(x > 0.0, x, 0.0)
    tl.store(out_ptr + index, positive * positive, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK = 256
    grid = (triton.cdiv(out.numel(), BLOCK),)
    squared_relu_kernel[grid](x, out, out.numel(), n_cols, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return out
