"""Quotients of sums that share an exponential of data, and logarithms of one plus such an exponential."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.ranges import calls_of, is_unbounded
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i).to(tl.float32)
    {step}
    tl.store(out_ptr + i, y)

def run(x, out):
    kernel[(1,)](x, out, B=128)
"""
BAD = (_KERNEL.format(step="y = tl.exp(x) / (1 + tl.exp(x))"),)
GOOD = (
    _KERNEL.format(step="y = tl.where(x > 20, x, tl.log(1 + tl.exp(x)))"),
    _KERNEL.format(step="e = tl.exp(x)\n    y = tl.where(x > 0, 1 / (1 + tl.exp(-x)), e / (1 + e))"),
    _KERNEL.format(step="y = tl.maximum(x, 0) + tl.log(1 + tl.exp(-tl.abs(x)))"),
)


@kernel_rule("medium", "numerical stability", BAD, GOOD)
def exponent_overflows(kernel: SourceKernel) -> Iterator[Fault]:
    """An exponential that overflows is divided by itself, or its logarithm is taken.

    exp(x) is infinite in float32 from x = 88.8 on. exp(x) / (1 + exp(x)) is NaN from there, log(1 + exp(x))
    is infinite where PyTorch's softplus returns x, and tanh written with exponentials is NaN.

    Fix: let the exponential vanish where it would overflow: 1 / (1 + exp(-x)) for the sigmoid, and max(x,
    0) + log(1 + exp(-abs(x))) for softplus. tanh(x) is 2 * sigmoid(2 * x) - 1.
    """
    found = values(kernel)
    for node in found.expressions:
        if _is_quotient(found, node) and not _is_guarded(found, node):
            yield Fault(
                node,
                f"{ast.unparse(node)} is inf / inf = NaN where the exponential overflows, from 88.8 on.",
                "Divide by the exponential first: the sigmoid is 1 / (1 + tl.exp(-x)), "
                "and tanh(x) is 2 / (1 + tl.exp(-2 * x)) - 1.",
            )
        elif _is_softplus(found, node) and not _is_guarded(found, node):
            yield Fault(
                node,
                f"{ast.unparse(node)} is infinite where the exponential overflows, from 88.8 on; softplus is "
                "nearly the argument itself there.",
                "Write tl.maximum(x, 0) + tl.log(1 + tl.exp(-tl.abs(x))).",
            )


def _is_guarded(found: KernelValues, node: ast.expr) -> bool:
    """Whether something decides when the value is used, on which the exponent may depend."""
    tests = found.kernel.flow.conditions(found.written(node))
    return (
        node in found.selected
        or any(isinstance(test, ast.Compare) for test in tests)
        or any(call in caller.selected for caller, call in calls_of(found.kernel))
    )


def _is_quotient(found: KernelValues, node: ast.expr) -> bool:
    quotient = found.quotient(node)
    if quotient is None or not isinstance(found.bare(quotient[1]), ast.BinOp):
        return False
    return bool(_factors(found, quotient[0]) & _factors(found, quotient[1]))


def _is_softplus(found: KernelValues, node: ast.expr) -> bool:
    """log(1 + exp(x)) and log1p(exp(x))"""
    logarithm = found.operation(node)
    if not logarithm or len(logarithm.operands) != 1:
        return False
    (inside,) = logarithm.operands
    if logarithm.name == "log1p":
        return _exponential(found, inside) is not None
    match found.bare(inside):
        case ast.BinOp(left=left, op=ast.Add(), right=right) if logarithm.name in ("log", "log2"):
            return any(
                found.number(one) == 1 and _exponential(found, other) is not None
                for one, other in ((left, right), (right, left))
            )
    return False


def _exponential(found: KernelValues, value: ast.expr) -> int | None:
    """The key of an exponential of data; None for anything else."""
    exponent = found.operand(value, "exp", "exp2")
    if exponent is None or not is_unbounded(found, exponent):
        return None
    return found.key(found.bare(value))


def _factors(found: KernelValues, value: ast.expr) -> frozenset[int]:
    """The exponentials that make the value infinite: those in its sums and products."""
    value = found.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _factors(found, left) | _factors(found, right)
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(found, left)
    key = _exponential(found, value)
    return frozenset() if key is None else frozenset({key})
