"""Each difference of a mean of squares and the square of the mean of the same data."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr, var)
"""
BAD = (_KERNEL.format(steps="mean = tl.sum(x) / n\n    var = tl.sum(x * x) / n - mean * mean"),)
GOOD = (
    # A difference of squares is no variance.
    _KERNEL.format(steps="m = tl.sum(x) / n\n    k = tl.load(out_ptr)\n    var = k * k - m * m"),
)


@kernel_rule("medium", "numerical stability", BAD, GOOD)
def variance_by_difference(kernel: SourceKernel) -> Iterator[Fault]:
    """A variance is computed as the mean of the squares less the square of the mean.

    Both are large where the mean is large beside the spread, and nearly equal: their difference loses most
    of its digits, and may come out as zero or below it, of which the root is NaN. With a mean of 1000 and a
    spread of 1 float32 has about one digit left.

    Fix: subtract the mean first and average the squares of what remains, with the lanes beyond the end set
    to zero; or use Welford's update where the data can be read only once.
    """
    found = values(kernel)
    for node in found.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if _is_variance(found, left, right):
                yield Fault(
                    node,
                    f"{ast.unparse(node)} takes the variance as a difference of two large numbers, which "
                    "loses its digits where the mean is large beside the spread.",
                    "Subtract the mean from the data first, and average the squares of that, "
                    "tl.where(mask, x - mean, 0.0).",
                )


def _is_variance(found: KernelValues, left: ast.expr, right: ast.expr) -> bool:
    mean = found.squared(right)
    if mean is None:
        return False
    of_squares, of_data = _mean_of(found, left), _mean_of(found, mean)
    if of_squares is None or of_data is None or not found.same(of_squares[1], of_data[1]):
        return False
    squares = (found.squared(term) for term in found.terms(of_squares[0]))
    roots = {found.key(found.bare(root)) for root in squares if root is not None}
    return bool(roots & {found.key(term) for term in found.terms(of_data[0])})


def _mean_of(found: KernelValues, value: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """A sum and what it is divided by, or multiplied with."""
    value = found.bare(value)
    if quotient := found.quotient(value):
        return quotient
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return left, right
    return None
