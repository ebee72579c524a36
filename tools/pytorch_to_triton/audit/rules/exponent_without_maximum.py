"""Each softmax and logsumexp whose exponents may be as large as the data."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.ranges import is_unbounded
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Suspicion, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_SOFTMAX = """
@triton.jit
def softmax(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    {steps}
    tl.store(out_ptr + i, y, mask=i < n)

def run(x, out):
    softmax[(1,)](x, out, x.numel(), B=128)
"""
_HELPER = "@triton.jit\ndef weights(x):\n    e = tl.exp(x)\n    return e / tl.sum(e)\n"
BAD = (
    _SOFTMAX.format(steps="y = tl.exp(x) / tl.sum(tl.exp(x), axis=0)"),
    _SOFTMAX.format(steps="y = x - tl.log(tl.sum(tl.exp(x)))"),
)
GOOD = (
    _SOFTMAX.format(steps="e = tl.exp(x)\n    y = e / n"),
    _SOFTMAX.format(steps="e = tl.exp(-(x * x) / 2)\n    y = e / tl.sum(e)"),
    # Whoever calls the function may have subtracted it.
    _HELPER,
)


@kernel_rule("medium", "numerical stability", BAD, GOOD, suspected=Suspicion("medium", ("unstable_results",)))
def exponent_without_maximum(kernel: SourceKernel) -> Iterator[Fault]:
    """Exponentials are divided by their sum, or its logarithm is taken, with no maximum subtracted.

    In float32 exp(x) is infinite from x = 88.8 on. One such value in a row makes inf / inf = NaN of a
    softmax and infinity of a logsumexp, where PyTorch is right: it subtracts the row's maximum first.

    Fix: subtract the maximum before the exponential, exp(x - max(x)); it cancels in the quotient. Add it
    again after the logarithm.
    """
    found = values(kernel)
    for node in found.expressions:
        if what := _what(found, node):
            yield Fault(
                node,
                f"{kernel.node.name} takes {what} of loaded data without subtracting the maximum: exp "
                "overflows from 88.8 on, and the result is NaN or infinite.",
                "Subtract the maximum before the exponential: tl.exp(x - tl.max(x, axis)).",
            )


def _what(found: KernelValues, node: ast.expr) -> str | None:
    """`the softmax` or `the logsumexp` where the value is one that overflows."""
    quotient = found.quotient(node)
    if quotient and _is_weighted(found, quotient[0]) and _sums_exponentials(found, quotient[1]):
        return "the softmax"
    logarithm = found.operation(node)
    if logarithm and logarithm.name in ("log", "log2") and len(logarithm.operands) == 1:
        return "the logsumexp" if _sums_exponentials(found, logarithm.operands[0]) else None
    return None


def _is_weighted(found: KernelValues, dividend: ast.expr) -> bool:
    """Whether the dividend is an exponential, or adds up products of tl.dot with exponentials."""
    weights = (found.operand(term, "dot") or term for term in found.terms(dividend))
    return any(_overflows(found, weight) for weight in weights)


def _overflows(found: KernelValues, value: ast.AST) -> bool:
    exponent = found.operand(value, "exp", "exp2")
    return exponent is not None and is_unbounded(found, exponent)


def _sums_exponentials(found: KernelValues, value: ast.expr) -> bool:
    """Whether the value adds up such exponentials with tl.sum, and nothing but them and constants."""
    terms = [term for term in found.terms(value) if not isinstance(term, ast.Constant)]
    terms = [term for term in terms if not found.is_a(term, "zeros")]
    return bool(terms) and "sum" in found.made_by(value) and all(_overflows(found, term) for term in terms)
