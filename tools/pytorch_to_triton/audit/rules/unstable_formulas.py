"""Formulas that overflow, divide by zero or lose their digits, where another gives the same."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.ranges import is_unbounded
from pytorch_to_triton.audit.examples import ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_LOAD = "x = tl.load(x_ptr + i, mask=i < n, other=0.0)"
_RUN = run("kernel[(1,)](x, out, x.numel(), B=128)")


@kernel_rule(
    "medium",
    "numerical stability",
    bad=(jit(ROW, _LOAD, "y = tl.exp(x) / (1 + tl.exp(x))") + _RUN,),
    good=(
        jit(ROW, _LOAD, "e = tl.exp(x)", "y = tl.where(x > 0, 1 / (1 + tl.exp(-x)), e / (1 + e))") + _RUN,
        jit(ROW, _LOAD, "y = tl.maximum(x, 0) + tl.log(1 + tl.exp(-tl.abs(x)))") + _RUN,
    ),
)
def exponent_overflows(kernel: SourceKernel) -> Iterator[Fault]:
    """An exponential that overflows is divided by itself, or its logarithm is taken.

    exp(x) is infinite in float32 from x = 88.8 on. exp(x) / (1 + exp(x)) is NaN from there, log(1 + exp(x))
    is infinite where PyTorch's softplus returns x, and tanh written with exponentials is NaN.

    Fix: let the exponential vanish where it would overflow: 1 / (1 + exp(-x)) for the sigmoid, and max(x,
    0) + log(1 + exp(-abs(x))) for softplus. tanh(x) is 2 * sigmoid(2 * x) - 1.
    """
    for node in kernel.expressions:
        if _is_quotient(kernel, node) and not _is_guarded(kernel, node):
            yield Fault(
                node,
                f"{ast.unparse(node)} is inf / inf = NaN where the exponential overflows, from 88.8 on.",
                "Divide by the exponential first: the sigmoid is 1 / (1 + tl.exp(-x)), "
                "and tanh(x) is 2 / (1 + tl.exp(-2 * x)) - 1.",
            )
        elif _is_softplus(kernel, node) and not _is_guarded(kernel, node):
            yield Fault(
                node,
                f"{ast.unparse(node)} is infinite where the exponential overflows, from 88.8 on; softplus is "
                "nearly the argument itself there.",
                "Write tl.maximum(x, 0) + tl.log(1 + tl.exp(-tl.abs(x))).",
            )


def _is_guarded(kernel: SourceKernel, node: ast.expr) -> bool:
    """Whether something decides when the value is used, on which the exponent may depend."""
    tests = kernel.conditions(kernel.written(node))
    return (
        node in kernel.selected
        or any(isinstance(test, ast.Compare) for test in tests)
        or any(call in caller.selected for caller, call in kernel.callers)
    )


def _is_quotient(kernel: SourceKernel, node: ast.expr) -> bool:
    quotient = kernel.quotient(node)
    if quotient is None or not isinstance(kernel.bare(quotient[1]), ast.BinOp):
        return False
    return bool(_factors(kernel, quotient[0]) & _factors(kernel, quotient[1]))


def _is_softplus(kernel: SourceKernel, node: ast.expr) -> bool:
    """log(1 + exp(x)) and log1p(exp(x))"""
    logarithm = kernel.operation(node)
    if not logarithm or len(logarithm.operands) != 1:
        return False
    (inside,) = logarithm.operands
    if logarithm.name == "log1p":
        return _exponential(kernel, inside) is not None
    match kernel.bare(inside):
        case ast.BinOp(left=left, op=ast.Add(), right=right) if logarithm.name in ("log", "log2"):
            return any(
                kernel.number(one) == 1 and _exponential(kernel, other) is not None
                for one, other in ((left, right), (right, left))
            )
    return False


def _exponential(kernel: SourceKernel, value: ast.expr) -> int | None:
    """The key of an exponential of data; None for anything else."""
    exponent = kernel.operand(value, "exp", "exp2")
    if exponent is None or not is_unbounded(kernel, exponent):
        return None
    return kernel.key(kernel.bare(value))


def _factors(kernel: SourceKernel, value: ast.expr) -> frozenset[int]:
    """The exponentials that make the value infinite: those in its sums and products."""
    value = kernel.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _factors(kernel, left) | _factors(kernel, right)
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(kernel, left)
    key = _exponential(kernel, value)
    return frozenset() if key is None else frozenset({key})


_POSITIVE = frozenset({"exp", "exp2", "softmax", "sigmoid", "where", "maximum", "clamp", "max", "dot"})


@kernel_rule(
    "info",
    "numerical stability",
    bad=(
        jit(ROW, _LOAD, "y = x / tl.sum(x, axis=0)"),
        jit(ROW, _LOAD, "y = x * tl.rsqrt(tl.sum(x * x) / n)"),
    ),
    good=(jit(ROW, _LOAD, "y = x / tl.maximum(tl.sum(x), 1e-6)"),),
)
def division_without_guard(kernel: SourceKernel) -> Iterator[Fault]:
    """A value is divided by a sum of loaded data, or by the root of a sum of squares, which may be zero.

    A sum of a mask, of weights or of magnitudes is zero where nothing is selected or all of it is zero, as in
    a row of padding; the quotient is then infinite or NaN. PyTorch's norms add an epsilon.

    Fix: limit the divisor from below, tl.maximum(total, eps), add an epsilon under the root, or select a
    result with tl.where(total > 0, ...).
    """
    for node in kernel.expressions:
        if node in kernel.selected or kernel.conditions(kernel.written(node)):
            continue
        divisor = _divisor(kernel, node)
        if divisor is not None:
            yield Fault(
                node,
                f"{ast.unparse(divisor)} may be zero: {ast.unparse(node)} is infinite or NaN then.",
                "Limit it from below with tl.maximum, add an epsilon, or select a result with tl.where.",
            )


def _divisor(kernel: SourceKernel, node: ast.expr) -> ast.expr | None:
    """The sum that a value is divided by, or by the root of, where nothing keeps it from zero."""
    if isinstance(node, ast.Call) and (inside := kernel.operand(node, "rsqrt")) is not None:
        return inside if _is_sum_of_squares(kernel, inside) else None
    quotient = kernel.quotient(node)
    if quotient is None:
        return None
    if (inside := kernel.operand(quotient[1], "sqrt", "sqrt_rn")) is not None:
        return inside if _is_sum_of_squares(kernel, inside) else None
    divisor = kernel.bare(quotient[1])
    made_by = kernel.made_by(divisor) if kernel.is_a(divisor, "sum") else frozenset()
    adds = any(kernel.number(term) for term in kernel.terms(divisor) if isinstance(term, ast.expr))
    return quotient[1] if "load" in made_by and not made_by & _POSITIVE and not adds else None


def _is_sum_of_squares(kernel: SourceKernel, value: ast.expr) -> bool:
    """Whether the value is a sum of squares, or that divided by a number, and nothing else."""
    value = kernel.bare(value)
    if quotient := kernel.quotient(value):
        return _is_sum_of_squares(kernel, quotient[0])
    terms = [term for term in kernel.terms(value) if not kernel.is_a(term, "zeros")]
    return "sum" in kernel.made_by(value) and all(kernel.squared(term) is not None for term in terms)


_MEAN = "mean = tl.sum(x) / n"


@kernel_rule(
    "medium",
    "numerical stability",
    bad=(jit(ROW, _LOAD, _MEAN, "var = tl.sum(x * x) / n - mean * mean"),),
    # A difference of squares is no variance.
    good=(jit(ROW, _LOAD, _MEAN, "k = tl.load(out_ptr)", "var = k * k - mean * mean"),),
)
def variance_by_difference(kernel: SourceKernel) -> Iterator[Fault]:
    """A variance is computed as the mean of the squares less the square of the mean.

    Both are large where the mean is large beside the spread, and nearly equal: their difference loses most
    of its digits, and may come out as zero or below it, of which the root is NaN. With a mean of 1000 and a
    spread of 1 float32 has about one digit left.

    Fix: subtract the mean first and average the squares of what remains, with the lanes beyond the end set
    to zero; or use Welford's update where the data can be read only once.
    """
    for node in kernel.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if _is_variance(kernel, left, right):
                yield Fault(
                    node,
                    f"{ast.unparse(node)} takes the variance as a difference of two large numbers, which "
                    "loses its digits where the mean is large beside the spread.",
                    "Subtract the mean from the data first, and average the squares of that, "
                    "tl.where(mask, x - mean, 0.0).",
                )


def _is_variance(kernel: SourceKernel, left: ast.expr, right: ast.expr) -> bool:
    mean = kernel.squared(right)
    if mean is None:
        return False
    of_squares, of_data = _mean_of(kernel, left), _mean_of(kernel, mean)
    if of_squares is None or of_data is None or not kernel.same(of_squares[1], of_data[1]):
        return False
    squares = (kernel.squared(term) for term in kernel.terms(of_squares[0]))
    roots = {kernel.key(kernel.bare(root)) for root in squares if root is not None}
    return bool(roots & {kernel.key(term) for term in kernel.terms(of_data[0])})


def _mean_of(kernel: SourceKernel, value: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """A sum and what it is divided by, or multiplied with."""
    value = kernel.bare(value)
    if quotient := kernel.quotient(value):
        return quotient
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return left, right
    return None
