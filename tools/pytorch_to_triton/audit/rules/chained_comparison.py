"""A kernel compares twice in one expression: `0 <= i < n`.

Triton before 3.9 does not compile chained comparisons, whatever is compared.

Fix: write two comparisons and join them: `(0 <= i) & (i < n)`.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr, n):
""")
BAD = (
    _kernel("i = tl.arange(0, 16) - 2", "tl.store(x_ptr + i, 0.0, mask=0 <= i < n)"),
    _kernel("if 0 < n < 5:", "    tl.store(x_ptr, 0.0)"),
)
GOOD = (
    _kernel("i = tl.arange(0, 16) - 2", "tl.store(x_ptr + i, 0.0, mask=(0 <= i) & (i < n))"),
    """
@triton.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, 0.0, mask=n > 0)

def run(x):
    assert 0 < x.dim() < 3
    kernel[(1,)](x, x.numel())
""",
    _kernel("if n > 0 and n < 5:", "    tl.store(x_ptr, 0.0)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Every comparison with more than one operator."""
    for node in kernel.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            parts = [
                ast.unparse(ast.Compare(left, [op], [right]))
                for (left, right), op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True)
            ]
            fix = " & ".join(f"({part})" for part in parts)
            message = f"Triton before 3.9 does not compile the chained comparison `{ast.unparse(node)}`."
            yield Fault(node, message, "Join two comparisons with &.", fix=fix)
