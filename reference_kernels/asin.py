"""Arcsine: out[i] = asin(x[i]), in radians.

x and out are [N]. One pass: x is read once, out written once. Triton's language has no asin; libdevice, which
the compiler brings along, has it: NVIDIA's or AMD's, whichever GPU the kernel is compiled for. It takes
float32 and float64 only: narrower dtypes are converted first, and rounded once, at the end. As in PyTorch,
NaN and whatever lies outside -1..1 become NaN.

Technique: a function of libdevice, in float32, on blocks of neighbouring elements.
Topics: libdevice, fusion and precision, masks.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INPUTS = {"x": "float32|bfloat16|float16[N] in -1..1"}
DIMS = {"N": [1, 1000, 4096, 100_003]}

BLOCK_N = 1024


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N] in x's dtype."""
    return torch.asin(x)


@triton.jit
def asin_kernel(x_ptr, out_ptr, n, x_stride, BLOCK_N: tl.constexpr):
    """One program computes BLOCK_N elements.

    x_ptr: [n], elements x_stride apart. out_ptr: [n], contiguous.
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, libdevice.asin(x), mask=mask)


def asin(x: torch.Tensor) -> torch.Tensor:
    """x: [N], any stride. Returns [N], contiguous, in x's dtype."""
    n = x.shape[0]
    out = torch.empty(n, dtype=x.dtype, device=x.device)
    if n > 0:
        asin_kernel[(triton.cdiv(n, BLOCK_N),)](x, out, n, x.stride(0), BLOCK_N)
    return out


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("asin(Tensor x) -> Tensor")
library.impl("asin", asin, "CompositeExplicitAutograd")
torch.library.register_fake("reference_kernels::asin", lambda x: x.new_empty(x.shape), lib=library)


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N], any stride. Returns [N], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.asin(x)
