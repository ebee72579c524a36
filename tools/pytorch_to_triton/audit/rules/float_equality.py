"""Computed floats are compared with == or !=.

Rounding makes a computed value differ in its last digits from what is meant, and it differs between GPUs and
compiler versions, which fuse multiplications and additions as they like.

Fix: compare with a tolerance, tl.abs(x - y) < 1e-6, or compare the integers that the floats come from.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.promotion import FLOATS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i).to(tl.float32)
    y = tl.load(y_ptr + i)
    {steps}
    tl.store(out_ptr + i, z)
"""
BAD = (
    _KERNEL.format(steps="z = tl.where(x / 3 == y, 1, 0)"),
    _KERNEL.format(steps="e = tl.exp(y)\n    z = (e != 1.0).to(tl.int32)"),
)
GOOD = (
    _KERNEL.format(steps="z = x == tl.max(x)"),
    _KERNEL.format(steps="z = tl.where(x * y == 0.0, 1, 0)"),
    _KERNEL.format(steps="z = tl.exp(y) != tl.exp(y)"),
    _KERNEL.format(steps='z = x * y == float("-inf")'),
    _KERNEL.format(steps="z = tl.floor(x / 2) * 2 == x"),
    _KERNEL.format(steps="z = x == y"),
    _KERNEL.format(steps="z = i / 2 == B"),
)

_EXACT = frozenset({"max", "min", "argmax", "argmin", "maximum", "minimum", "floor", "ceil", "round", "sort"})
_EXACT |= {"where", "clamp", "rint", "trunc", "topk", "isnan"}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Comparisons with a quotient, product or function of floats, but with zero, infinity or themselves."""
    found = values(kernel)
    for node in kernel.nodes:
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                computed = [side for side in (left, right) if _is_computed(found, side)]
                if computed and not _is_exact(found, left, right):
                    yield Fault(
                        node,
                        f"{ast.unparse(computed[0])} is a computed float: rounding decides what "
                        f"{ast.unparse(node)} gives.",
                        "Compare with a tolerance: tl.abs(a - b) < eps.",
                    )


def _is_computed(found: KernelValues, value: ast.expr) -> bool:
    made = found.bare(value)
    if found.dtype(value) not in FLOATS or not found.made_by(made) & {"load"}:
        return False
    is_product = isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
    return is_product or found.is_a(
        made, "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "sum", "erf"
    )


def _is_exact(found: KernelValues, left: ast.expr, right: ast.expr) -> bool:
    """Whether the comparison asks for zero, infinity, NaN or a value that was picked from others."""
    if found.same(left, right) or found.made_by(left, right) & _EXACT:
        return True
    numbers = [found.number(side) for side in (left, right)]
    return any(number is not None and number in (0.0, float("inf"), -float("inf")) for number in numbers)
