"""The logarithm of a loaded value is taken as it is.

log(0) is -inf, and a probability, a count or a magnitude is often exactly zero; times zero it becomes NaN.

Instead, limit the value from below, tl.log(tl.maximum(p, 1e-30)), or select the result with
tl.where(p > 0, ...).
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "info"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    p = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    {step}
    tl.store(out_ptr + i, y, mask=i < n)
"""
BAD = (
    _KERNEL.format(step="y = -p * tl.log(p)"),
    _KERNEL.format(step="q = p\n    y = tl.math.log2(q)"),
)
GOOD = (
    _KERNEL.format(step="y = tl.log(p + 1e-9)"),
    _KERNEL.format(step="y = tl.log(tl.maximum(p, 1e-9))"),
    _KERNEL.format(step="y = tl.where(p > 0, p * tl.log(p), 0.0)"),
    _KERNEL.format(step="y = tl.log(tl.sum(tl.exp(p - tl.max(p))))"),
    _KERNEL.format(step="p = tl.where(i < n, p, 1.0)\n    y = tl.log(p)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each tl.log of a load that nothing keeps from zero."""
    found = values(kernel)
    for call in found.operations:
        if call.name not in ("log", "log2", "log10") or call.call in found.selected or not call.operands:
            continue
        loaded = found.bare(call.operands[0])
        if isinstance(loaded, ast.Call) and found.is_a(loaded, "load") and not _is_replaced(found, loaded):
            yield Fault(
                call.call,
                f"{ast.unparse(call.call)} is -inf where the loaded value is zero, and NaN once that is "
                "multiplied by zero.",
                "Limit the value from below with tl.maximum, or select the result with tl.where.",
            )


def _is_replaced(found: KernelValues, load: ast.Call) -> bool:
    """Whether the masked lanes are given a positive number: the author thought of the logarithm."""
    other = argument(load, 2, "other")
    return other is not None and (found.number(other) or 0) > 0
