"""Divisions by sums of data, and by roots of sums of squares, that nothing keeps from zero."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, eps, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {}
    tl.store(out_ptr + i, y, mask=i < n)
"""
_POSITIVE = frozenset({"exp", "exp2", "softmax", "sigmoid", "where", "maximum", "clamp", "max", "dot"})


@kernel_rule(
    "info",
    "numerical stability",
    bad=(
        _KERNEL.format("y = x / tl.sum(x, axis=0)"),
        _KERNEL.format("y = x * tl.rsqrt(tl.sum(x * x) / n)"),
        _KERNEL.format("y = x / tl.sqrt(tl.sum(x * x))"),
    ),
    good=(
        _KERNEL.format("y = x / tl.maximum(tl.sum(x), 1e-6)"),
        _KERNEL.format("e = tl.exp(x - tl.max(x))\n    y = e / tl.sum(e)"),
        _KERNEL.format("s = tl.sum(x)\n    y = tl.where(s != 0, x / s, 0.0)"),
        _KERNEL.format("y = x * tl.rsqrt(tl.sum(x * x) / n + eps)"),
    ),
)
def division_without_guard(kernel: SourceKernel) -> Iterator[Fault]:
    """A value is divided by a sum of loaded data, or by the root of a sum of squares, which may be zero.

    A sum of a mask, of weights or of magnitudes is zero where nothing is selected or all of it is zero, as in
    a row of padding; the quotient is then infinite or NaN. PyTorch's norms add an epsilon.

    Fix: limit the divisor from below, tl.maximum(total, eps), add an epsilon under the root, or select a
    result with tl.where(total > 0, ...).
    """
    found = values(kernel)
    for node in found.expressions:
        if node in found.selected or kernel.flow.conditions(found.written(node)):
            continue
        divisor = _divisor(found, node)
        if divisor is not None:
            yield Fault(
                node,
                f"{ast.unparse(divisor)} may be zero: {ast.unparse(node)} is infinite or NaN then.",
                "Limit it from below with tl.maximum, add an epsilon, or select a result with tl.where.",
            )


def _divisor(found: KernelValues, node: ast.expr) -> ast.expr | None:
    """The sum that a value is divided by, or by the root of, where nothing keeps it from zero."""
    if isinstance(node, ast.Call) and (inside := found.operand(node, "rsqrt")) is not None:
        return inside if _is_sum_of_squares(found, inside) else None
    quotient = found.quotient(node)
    if quotient is None:
        return None
    if (inside := found.operand(quotient[1], "sqrt", "sqrt_rn")) is not None:
        return inside if _is_sum_of_squares(found, inside) else None
    return quotient[1] if _is_open_sum(found, found.bare(quotient[1])) else None


def _is_open_sum(found: KernelValues, divisor: ast.expr) -> bool:
    made_by = found.made_by(divisor)
    adds = any(found.number(term) for term in found.terms(divisor) if isinstance(term, ast.expr))
    return found.is_a(divisor, "sum") and "load" in made_by and not made_by & _POSITIVE and not adds


def _is_sum_of_squares(found: KernelValues, value: ast.expr) -> bool:
    """Whether the value is a sum of squares, or that divided by a number, and nothing else."""
    value = found.bare(value)
    if quotient := found.quotient(value):
        return _is_sum_of_squares(found, quotient[0])
    terms = [term for term in found.terms(value) if not found.is_a(term, "zeros")]
    return "sum" in found.made_by(value) and all(found.squared(term) is not None for term in terms)
