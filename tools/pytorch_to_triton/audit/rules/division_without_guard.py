"""A value is divided by a sum of loaded data, which may be zero.

A sum of a mask, of weights or of magnitudes is zero where nothing is selected or all of it is zero; the
quotient is then infinite or NaN.

Fix: limit the divisor from below, tl.maximum(total, eps), or select a result with
tl.where(total > 0, ...).
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "info"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr + i, y, mask=i < n)
"""
BAD = (_KERNEL.format(steps="y = x / tl.sum(x, axis=0)"),)
GOOD = (
    _KERNEL.format(steps="y = x / tl.maximum(tl.sum(x), 1e-6)"),
    _KERNEL.format(steps="e = tl.exp(x - tl.max(x))\n    y = e / tl.sum(e)"),
    _KERNEL.format(steps="s = tl.sum(x)\n    y = tl.where(s != 0, x / s, 0.0)"),
)

_POSITIVE = frozenset({"exp", "exp2", "softmax", "sigmoid", "where", "maximum", "clamp", "max", "dot"})


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each division by a tl.sum of data that nothing keeps from zero."""
    found = values(kernel)
    for node in found.expressions:
        quotient = found.quotient(node)
        if quotient is None or node in found.selected or kernel.flow.conditions(found.written(node)):
            continue
        divisor = found.bare(quotient[1])
        if found.is_a(divisor, "sum") and _may_be_zero(found, divisor):
            yield Fault(
                node,
                f"{ast.unparse(quotient[1])} is a sum that may be zero: the result is infinite or NaN then.",
                "Limit the divisor from below with tl.maximum, or select a result with tl.where.",
            )


def _may_be_zero(found: KernelValues, divisor: ast.expr) -> bool:
    made_by = found.made_by(divisor)
    adds = any(found.number(term) for term in found.terms(divisor) if isinstance(term, ast.expr))
    return "load" in made_by and not made_by & _POSITIVE and not adds
