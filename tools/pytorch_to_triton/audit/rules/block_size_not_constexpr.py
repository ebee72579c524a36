"""The size of a block is a value that is known only at run time.

A block's shape is part of its type, so the compiler needs it: it refuses a parameter that is not marked
tl.constexpr (unless the value happens to be 1, which it treats as a constant).

Fix: mark the parameter `BLOCK: tl.constexpr`, pass triton.next_power_of_2 of the size, and mask.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import argument, shape_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_RUN = """
def run(x):
    kernel[(1,)](x, x.numel())
"""
BAD = (
    """
@triton.jit
def kernel(x_ptr, BLOCK):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)
"""
    + _RUN,
    """
@triton.jit
def kernel(x_ptr, n: int):
    tl.store(x_ptr + tl.arange(0, 2 * n), 0.0)
"""
    + _RUN,
)
GOOD = (
    # A function that kernels call receives their constants as constants.
    """
@triton.jit
def lanes(BLOCK):
    return tl.arange(0, BLOCK)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Sizes made of parameters that a launch passes at run time."""
    if not kernel.is_launched:
        return
    for path, call in kernel.calls():
        sizes = list(shape_of(path, call))
        if path == "triton.language.arange":
            sizes += [size for size in (argument(call, 0, "start"), argument(call, 1, "end")) if size]
        for size in sizes:
            for name in sorted(_operands(size) & kernel.runtime_parameters):
                yield Fault(
                    size,
                    f"The size of a block must be known to the compiler, and {name} is not: "
                    f"{kernel.node.name} does not compile.",
                    f"Declare the parameter as `{name}: tl.constexpr` and pass a power of two.",
                )


def _operands(node: ast.expr) -> frozenset[str]:
    """The names in an arithmetic expression; of anything else, none."""
    match node:
        case ast.Name(id=name):
            return frozenset({name})
        case ast.BinOp(left=left, right=right):
            return _operands(left) | _operands(right)
        case ast.UnaryOp(operand=operand):
            return _operands(operand)
    return frozenset()
