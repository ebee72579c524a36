"""A kernel raises a tensor to a power with `**`.

Triton's tensors have no such operator: the kernel does not compile.

Instead, multiply, `x * x`, or write tl.exp2(y * tl.log2(x)) for positive x, or
`libdevice.pow` from triton.language.extra.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.store(x_ptr, tl.sum(x**2))
""",
    """
@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    x **= 3
    tl.store(x_ptr, (x - 1.0) ** 0.5)
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 2.0 ** tl.load(x_ptr))
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr, LEVEL: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B) * 2**LEVEL)
    tl.store(x_ptr, tl.sum(x * x))
""",
    """
@triton.jit
def kernel(x_ptr, LEVEL: tl.constexpr):
    width = LEVEL**2
    tl.store(x_ptr, width)
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x):
    kernel[(1,)](x**2)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Powers with a base or an exponent that only a run knows."""
    for node in kernel.nodes:
        match node:
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                pass
            case ast.AugAssign(target=ast.Name() as base, op=ast.Pow(), value=exponent):
                pass
            case _:
                continue
        known = max(kind(base, kernel), kind(exponent, kernel)) == Kind.UNKNOWN
        if known or not runs_for_sure(node, kernel):
            continue
        yield Fault(
            node,
            f"Triton has no power of tensors: `{ast.unparse(node)}` does not compile.",
            "Multiply, or use libdevice.pow from triton.language.extra.",
            fix=_product(node, base, exponent),
        )


def _product(node: ast.stmt | ast.expr, base: ast.expr, exponent: ast.expr) -> str:
    """The power as a product, where it is a square or a cube of a name."""
    times = literal_integer(exponent)
    if isinstance(node, ast.expr) and isinstance(base, ast.Name) and times in (2, 3):
        return f"({' * '.join([base.id] * times)})"
    return ""
