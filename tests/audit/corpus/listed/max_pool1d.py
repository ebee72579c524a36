"""Max pooling along the last axis: window 3, stride 2, one position of padding on each side."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[B, C, L]"}
DIMS = {"B": [1, 4], "C": [3, 64], "L": [2, 63, 128, 3000]}

WINDOW = 3
STRIDE = 2
PADDING = 1


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L]. Returns [B, C, (L + 2 * PADDING - WINDOW) // STRIDE + 1]."""
    return F.max_pool1d(x, WINDOW, stride=STRIDE, padding=PADDING)


@triton.jit
def max_pool1d_kernel(
    x_ptr,
    out_ptr,
    in_len,
    out_len,
    WIN: tl.constexpr,
    STEP: tl.constexpr,
    PAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Program (r, j) computes BLOCK neighbouring outputs of row r of the [B * C, L] view of x."""
    row = tl.program_id(0).to(tl.int64)
    out_offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    out_mask = out_offs < out_len
    x_row = x_ptr + row * in_len

    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for k in tl.static_range(WIN):
        pos = out_offs * STEP - PAD + k
        inside = (pos >= 0) & (pos < in_len) & out_mask
        v = tl.load(x_row + pos, mask=inside, other=0.0)
        best = tl.maximum(best, v.to(tl.float32), propagate_nan=tl.PropagateNan.ALL)

    tl.store(out_ptr + row * out_len + out_offs, best.to(out_ptr.dtype.element_ty), mask=out_mask)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], any strides. Returns [B, C, L_out], contiguous, in x's dtype."""
    batch, channels, in_len = x.shape
    out_len = (in_len + 2 * PADDING - WINDOW) // STRIDE + 1
    x = x.contiguous()
    out = torch.empty((batch, channels, out_len), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    block = min(1024, max(64, triton.next_power_of_2(out_len)))
    grid = (batch * channels, triton.cdiv(out_len, block))
    max_pool1d_kernel[grid](
        x, out, in_len, out_len, WIN=WINDOW, STEP=STRIDE, PAD=PADDING, BLOCK=block, num_warps=4
    )
    return out
