"""Max pooling along the last dimension, with the positions of the maxima.

x is [B, C, L]; out and indices are [B, C, L_out]. Windows of KERNEL values start every STRIDE values, over
x padded on both sides by PADDING. As in PyTorch, NaN wins, and of equal maxima the first is reported.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[B, C, L]"}
DIMS = {"B": [1, 4], "C": [1, 3, 64], "L": [3, 100, 1024, 5001]}

KERNEL = 3
STRIDE = 2
PADDING = 1


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [B, C, L]. Returns the maxima in x's dtype and their positions in int64, both [B, C, L_out]."""
    return F.max_pool1d(x, KERNEL, STRIDE, PADDING, return_indices=True)


@triton.jit
def max_pool1d_kernel(
    x_ptr,
    out_ptr,
    index_ptr,
    n_out,
    length,
    out_length,
    KERNEL_SIZE: tl.constexpr,
    STRIDE_SIZE: tl.constexpr,
    PAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program pools BLOCK windows, taken from [B * C, L_out] flattened. All tensors contiguous."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_out
    row = offs // out_length
    first = (offs % out_length) * STRIDE_SIZE - PAD

    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    best_pos = tl.maximum(first, 0).to(tl.int32)
    for k in range(KERNEL_SIZE):
        pos = first + k
        inside = mask & (pos >= 0) & (pos < length)
        x = tl.load(x_ptr + row * length + pos, mask=inside, other=-float("inf")).to(tl.float32)
        better = inside & ((x > best) | (x != x))
        best = tl.where(better, x, best)
        best_pos = tl.where(better, pos, best_pos)

    tl.store(out_ptr + offs, best, mask=mask)
    tl.store(index_ptr + offs, best_pos, mask=mask)


def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [B, C, L]. Returns the maxima in x's dtype and their positions in int64, both [B, C, L_out]."""
    batch, channels, length = x.shape
    x = x.contiguous()
    out_length = (length + 2 * PADDING - KERNEL) // STRIDE + 1
    out = torch.empty((batch, channels, out_length), dtype=x.dtype, device=x.device)
    indices = torch.empty((batch, channels, out_length), dtype=torch.int64, device=x.device)
    n_out = out.numel()
    if n_out == 0:
        return out, indices
    BLOCK = 512
    max_pool1d_kernel[(triton.cdiv(n_out, BLOCK),)](
        x,
        out,
        indices,
        n_out,
        length,
        out_length,
        KERNEL_SIZE=KERNEL,
        STRIDE_SIZE=STRIDE,
        PAD=PADDING,
        BLOCK=BLOCK,
    )
    return out, indices
