"""A sum counts the lanes beyond the end of the data.

A masked load fills them with `other`, zero for one. What is computed from it is not zero any more: (0 - mean)
squared adds mean * mean to a variance for each such lane, and exp(0 - max) adds to the sum of a softmax.

Instead, set those lanes to zero just before the sum, tl.sum(tl.where(mask, d * d, 0.0)), or load -inf for
exp.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.arguments import argument
from pytorch_to_triton.audit.arithmetic import Values, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.padding import is_padded_along, masked_load
from pytorch_to_triton.audit.source import Kernel

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


def check(kernel: Kernel) -> Iterator[Fault]:
    """Each tl.sum of squared differences from a mean, or of exponentials, of a load that is padded."""
    found = values(kernel)
    for call in found.operations:
        if call.name != "sum" or not call.operands or call.call in found.selected:
            continue
        for term in found.terms(call.operands[0]):
            load = _counted(found, term) if isinstance(term, ast.expr) else None
            padding = is_padded_along(found, load, call) if load else None
            if padding:
                yield Fault(
                    call.call,
                    f"{ast.unparse(term)} is not zero in the lanes from {ast.unparse(padding.end)} to "
                    f"{ast.unparse(padding.width)}, which the mask of the load fills; the sum counts them.",
                    "Set them to zero just before the sum: tl.sum(tl.where(mask, ..., 0.0)).",
                )


def _counted(found: Values, term: ast.expr) -> ast.Call | None:
    """The masked load of which the term is not zero in the lanes that the mask leaves out."""
    if exponent := found.operand(term, "exp", "exp2"):
        load = masked_load(found, exponent) or _shifted(found, exponent)
        return load if load and _fills_with_zero(found, load) else None
    difference = found.squared(term) or found.operand(term, "abs")
    return _shifted(found, difference) if difference is not None else None


def _shifted(found: Values, value: ast.expr) -> ast.Call | None:
    """The load of `load - m`, where m is what a reduction made, the same for all lanes."""
    match found.bare(value):
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return masked_load(found, left) if _is_reduced(found, right) else None
    return None


def _is_reduced(found: Values, value: ast.expr) -> bool:
    """Whether the value is a tl.sum or tl.max, or such a one divided by a number."""
    value = found.bare(value)
    if quotient := found.quotient(value):
        return _is_reduced(found, quotient[0])
    return found.is_a(value, "sum", "max")


def _fills_with_zero(found: Values, load: ast.Call) -> bool:
    other = argument(load, 2, "other")
    return other is None or found.number(other) == 0
