"""Wrong: the sign is found by comparing with zero, so -0.0 counts as positive."""

import torch
import triton
import triton.language as tl

INPUTS = {"magnitude": "float32|float16[M, N]", "sign": "float32|float16[M, N]"}
DIMS = {"M": [1, 7, 30], "N": [1, 32, 90]}


def reference(magnitude: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """magnitude, sign: [M, N]. Returns magnitude with the signs of sign, [M, N]."""
    return torch.copysign(magnitude, sign)


@triton.jit
def copysign_kernel(
    magnitude_ptr,
    sign_ptr,
    out_ptr,
    n_elements,
    n_cols,
    magnitude_stride_m,
    magnitude_stride_n,
    sign_stride_m,
    sign_stride_n,
    BLOCK: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    row = index // n_cols
    col = index % n_cols
    magnitude = tl.load(magnitude_ptr + row * magnitude_stride_m + col * magnitude_stride_n, mask=mask)
    sign = tl.load(sign_ptr + row * sign_stride_m + col * sign_stride_n, mask=mask)
    absolute = tl.abs(magnitude)
    tl.store(out_ptr + index, tl.where(sign < 0.0, absolute * -1.0, absolute), mask=mask)


def run(magnitude: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = magnitude.shape
    out = torch.empty((n_rows, n_cols), dtype=magnitude.dtype, device=magnitude.device)
    if out.numel() == 0:
        return out
    BLOCK = 256
    grid = (triton.cdiv(out.numel(), BLOCK),)
    copysign_kernel[grid](
        magnitude, sign, out, out.numel(), n_cols, *magnitude.stride(), *sign.stride(), BLOCK=BLOCK
    )
    return out
