"""Dropout with a given keep mask: kept values are scaled by 1 / (1 - p), the others become 0."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]", "x_keep": "bool[N]", "p": 0.25}
DIMS = {"N": [1, 10, 1000, 5000]}


def reference(x: torch.Tensor, x_keep: torch.Tensor, p: float) -> torch.Tensor:
    return torch.where(x_keep, x / (1 - p), torch.zeros_like(x))


@triton.jit
def _dropout(
    x_ptr,  # pointer to the input
    x_keep_ptr,  # pointer to a mask of 0s and 1s
    output_ptr,  # pointer to the output
    n_elements,  # number of elements in the `x` tensor
    p,  # probability that an element of `x` is changed to zero
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x_keep = tl.load(x_keep_ptr + offsets, mask=mask)
    output = tl.where(x_keep, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


def run(x: torch.Tensor, x_keep: torch.Tensor, p: float) -> torch.Tensor:
    output = torch.empty_like(x)
    assert x.is_contiguous() and x_keep.is_contiguous()
    n_elements = x.numel()
    if n_elements == 0:
        return output
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    _dropout[grid](x, x_keep, output, n_elements, p, BLOCK_SIZE=1024)
    return output
