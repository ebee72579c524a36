"""An epsilon is added in float16 that float16 rounds to zero.

The smallest positive float16 is 6e-8, and what is below half of it becomes zero: the sum is what it was
before, and a division by it is not protected.

Fix: cast to float32 before adding the epsilon, or add at least 1e-4, which float16 resolves beside 0.1.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "medium"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    h = x.to(tl.float16)
    {steps}
    tl.store(out_ptr + i, y)
"""
BAD = (
    _KERNEL.format(steps="y = 1.0 / (tl.abs(h) + 1e-8)"),
    _KERNEL.format(steps="eps = 1e-12\n    h += eps\n    y = x / h"),
)
GOOD = (
    _KERNEL.format(steps="y = 1.0 / (tl.abs(x) + 1e-8)"),
    _KERNEL.format(steps="y = 1.0 / (h.to(tl.float32) + 1e-8)"),
    _KERNEL.format(steps="y = h + 1e-4"),
    _KERNEL.format(steps="y = h + 0.0"),
    _KERNEL.format(steps="b = x.to(tl.bfloat16)\n    y = b + 1e-12"),
)

_LEAST = 2.0**-25
"""Half of the smallest positive float16."""


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a float16 block and a literal that float16 makes zero."""
    found = values(kernel)
    for node in found.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                pass
            case _:
                continue
        for block, literal in ((left, right), (right, left)):
            epsilon = found.number(literal)
            if epsilon and abs(epsilon) <= _LEAST and found.dtype(block) == "float16":
                yield Fault(
                    node,
                    f"{epsilon:g} is zero in float16, which {ast.unparse(block)} is: nothing is added.",
                    f"Cast to tl.float32 first: {ast.unparse(block)}.to(tl.float32) + {epsilon:g}.",
                )
