"""A value is divided by the root of a sum of squares, and nothing is added to the sum.

A row of zeros, as padding is, has a sum of zero: 0 / 0 is NaN, and it spreads through whatever uses the row.
PyTorch's norms add an epsilon, and torch.nn.functional.normalize limits the norm from below.

Fix: add an epsilon under the root, tl.rsqrt(mean_square + eps), or limit the norm with tl.maximum.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, eps, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr + i, y, mask=i < n)
"""
BAD = (_KERNEL.format(steps="y = x * tl.rsqrt(tl.sum(x * x) / n)"),)
GOOD = (
    _KERNEL.format(steps="y = x * tl.rsqrt(tl.sum(x * x) / n + eps)"),
    _KERNEL.format(steps="s = tl.sum(x * x)\n    y = tl.where(s > 0, x * tl.rsqrt(s), 0.0)"),
)

_ROOTS = ("sqrt", "sqrt_rn")


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each rsqrt of squares, and each division by the sqrt of squares."""
    found = values(kernel)
    for node in found.expressions:
        squares = _divides_by_root_of(found, node)
        if squares is None or not _may_be_zero(found, squares):
            continue
        if node not in found.selected and not kernel.flow.conditions(found.written(node)):
            yield Fault(
                node,
                f"{ast.unparse(node)} divides by zero where all the squares are zero, as in a row of zeros; "
                "the result is NaN or infinite.",
                "Add an epsilon under the root, or limit it from below with tl.maximum.",
            )


def _divides_by_root_of(found: KernelValues, node: ast.expr) -> ast.expr | None:
    """What stands under the root."""
    if inside := found.operand(node, "rsqrt") if isinstance(node, ast.Call) else None:
        return inside
    quotient = found.quotient(node)
    return found.operand(quotient[1], *_ROOTS) if quotient else None


def _may_be_zero(found: KernelValues, value: ast.expr) -> bool:
    """Whether the value is a sum of squares, or that divided by a number, and nothing else."""
    value = found.bare(value)
    quotient = found.quotient(value)
    if quotient:
        return _may_be_zero(found, quotient[0])
    terms = [
        term for term in found.terms(value) if not found.is_a(term, "zeros") and not _is_zero(found, term)
    ]
    return (
        bool(terms)
        and "sum" in found.made_by(value)
        and all(found.squared(term) is not None for term in terms)
    )


def _is_zero(found: KernelValues, term: ast.AST) -> bool:
    return isinstance(term, ast.expr) and found.number(term) == 0
