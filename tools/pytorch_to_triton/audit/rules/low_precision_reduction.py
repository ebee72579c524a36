"""tl.sum or tl.cumsum adds up values that are float16 or bfloat16.

Triton keeps the dtype: unlike torch.sum it does not add up in float32. Each partial sum is rounded to 11 or 8
bits, and in float16 it is infinite from 65520 on.

Fix: cast before the sum, tl.sum(x.to(tl.float32)), and cast the result where it is stored.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.promotion import LOW_PRECISION
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "medium"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr, y)
"""
BAD = (
    _KERNEL.format(steps="y = tl.sum(x.to(tl.float16), axis=0)"),
    _KERNEL.format(steps="h = tl.cast(x, tl.bfloat16)\n    y = (h * h).sum(axis=0)"),
    _KERNEL.format(steps="x = x.to(tl.float16)\n    y = tl.cumsum(tl.where(i < n, x, 0.0), 0)"),
)
GOOD = (
    _KERNEL.format(steps="y = tl.sum(x.to(tl.float32))"),
    _KERNEL.format(steps="y = tl.sum(x.to(tl.float16), dtype=tl.float32)"),
    _KERNEL.format(steps="h = x.to(tl.float16)\n    y = tl.sum(h.to(tl.float32) * 2)"),
    _KERNEL.format(steps="y = tl.sum(x)"),
    # Division makes float32 of float16.
    _KERNEL.format(steps="h = x.to(tl.float16)\n    y = tl.sum(h / h)"),
    _KERNEL.format(steps="y = tl.max(x.to(tl.float16))"),
)

_ADDS_IN = {"sum": LOW_PRECISION, "cumsum": ("float16",)}
"""tl.cumsum makes float32 of bfloat16."""


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a block that certainly is of low precision."""
    found = values(kernel)
    for call in found.operations:
        if call.name not in _ADDS_IN or not call.operands or call.option(3, "dtype"):
            continue
        dtype = found.dtype(call.operands[0])
        if dtype in _ADDS_IN[call.name] and not _is_asked_for_dtype(kernel, call.call):
            block = ast.unparse(call.operands[0])
            yield Fault(
                call.call,
                f"{call.name} of {block} adds up in {dtype}: Triton promotes nothing, and rounds each step.",
                f"Cast before it: tl.{call.name}(({block}).to(tl.float32), ...).",
            )


def _is_asked_for_dtype(kernel: SourceKernel, call: ast.Call) -> bool:
    """`tl.sum(x).dtype`"""
    around = kernel.flow.parents.get(call)
    return isinstance(around, ast.Attribute) and around.attr == "dtype"
