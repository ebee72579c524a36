"""Honest: calls libdevice's expm1, so that small negative inputs keep their digits."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INPUTS = {"x": "float32|bfloat16|float16[M, N]", "alpha": 1.3}
DIMS = {"M": [1, 6, 30], "N": [1, 32, 111]}


def reference(x: torch.Tensor, alpha: float) -> torch.Tensor:
    """x: [M, N]. Returns x where positive, alpha * (exp(x) - 1) elsewhere, [M, N]."""
    return torch.nn.functional.elu(x, alpha)


@triton.jit
def elu_kernel(x_ptr, out_ptr, n_elements, n_cols, alpha, stride_m, stride_n, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    offsets = (index // n_cols) * stride_m + (index % n_cols) * stride_n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = tl.where(x > 0.0, x, alpha * libdevice.expm1(x))
    tl.store(out_ptr + index, out, mask=mask)


def run(x: torch.Tensor, alpha: float) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK = 256
    grid = (triton.cdiv(out.numel(), BLOCK),)
    elu_kernel[grid](x, out, out.numel(), n_cols, alpha, x.stride(0), x.stride(1), BLOCK=BLOCK)
    return out
