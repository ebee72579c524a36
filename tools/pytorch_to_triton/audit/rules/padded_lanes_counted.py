"""A sum counts the lanes beyond the end of the data.

A masked load fills them with `other`, zero for one. What is computed from it is not zero any more: (0 - mean)
squared adds mean * mean to a variance for each such lane, and exp(0 - max) adds to the sum of a softmax.

Instead, set those lanes to zero just before the sum, tl.sum(tl.where(mask, d * d, 0.0)), or load -inf for
exp.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.padding import padded_sums
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    mask = i < n
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x) / n
    {steps}
    tl.store(out_ptr + tl.program_id(0), y)
"""
_ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, rows, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    x = tl.load(x_ptr + r[:, None] * C + tl.arange(0, C)[None, :], mask=r[:, None] < rows, other=0.0)
    d = x - (tl.sum(x, axis=1) / C)[:, None]
    tl.store(out_ptr + r, tl.sum(d * d, axis=1), mask=r < rows)
"""
BAD = (
    _KERNEL.format(steps="d = x - mean\n    y = tl.sum(d * d, axis=0) / n"),
    _KERNEL.format(steps="y = tl.sum((x - mean) ** 2) / n"),
    _KERNEL.format(steps="e = tl.exp(x - tl.max(x))\n    y = tl.sum(e)"),
    _ROWS.replace("axis=1), mask", "axis=0), mask"),
    """
@triton.jit
def kernel(x_ptr, out_ptr, rows, n, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    cols = tl.arange(0, B)
    col_mask = cols < n
    mask = (r < rows)[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + r[:, None] * n + cols[None, :], mask=mask, other=0.0)
    d = x - (tl.sum(x, axis=1) / n)[:, None]
    tl.store(out_ptr + r, tl.sum(d * d, axis=1), mask=r < rows)
""",
)
GOOD = (
    _KERNEL.format(steps="d = tl.where(mask, x - mean, 0.0)\n    y = tl.sum(d * d) / n"),
    _KERNEL.format(steps="d = (x - mean) * mask\n    y = tl.sum(d * d) / n"),
    _KERNEL.format(steps="y = tl.sum(x * x) / n"),
    _KERNEL.format(steps="x = tl.where(mask, x, mean)\n    d = x - mean\n    y = tl.sum(d * d) / n"),
    _KERNEL.format(steps="e = tl.exp(x - tl.max(x))\n    y = tl.sum(e)").replace("0.0", 'float("-inf")'),
    _ROWS,
    _KERNEL.format(steps="z = tl.load(out_ptr + i, mask=mask)\n    d = x - z\n    y = tl.sum(d * d)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each tl.sum of squared differences from a mean, or of exponentials, of a load that is padded."""
    for sum_ in padded_sums(values(kernel)):
        end, width = ast.unparse(sum_.padding.end), ast.unparse(sum_.padding.width)
        yield Fault(
            sum_.call,
            f"{ast.unparse(sum_.term)} is not zero in the lanes from {end} to {width}, which the mask of the "
            "load fills; the sum counts them.",
            "Set them to zero just before the sum: tl.sum(tl.where(mask, ..., 0.0)).",
        )
