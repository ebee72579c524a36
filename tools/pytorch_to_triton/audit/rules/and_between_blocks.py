"""`and`, `or` or `not` is applied to a block.

Triton warns about `and` and `or` between blocks and plans to refuse them; they compile to & and | today. On
blocks of integers they do not compile.

Fix: write `&`, `|` and `~` with parentheses around comparisons: `(i < n) & (j < m)`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.blocks import Kind, kind
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "best practices"
_kernel = example("""
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
""")
BAD = (
    _kernel("i = tl.arange(0, B)", "tl.store(x_ptr + i, 0.0, mask=i > 0 and i < n)"),
    _kernel(
        "inside = tl.arange(0, B) < n",
        "tl.store(x_ptr + tl.arange(0, B), 0.0, mask=inside or tl.program_id(0) == 0)",
    ),
)
GOOD = (
    _kernel("i = tl.arange(0, B)", "tl.store(x_ptr + i, 0.0, mask=(i > 0) & (i < n))"),
    _kernel("if tl.program_id(0) == 0 and n > 3:", "    tl.store(x_ptr + tl.arange(0, B), 0.0)"),
    """
@triton.jit
def kernel(x_ptr, n, CAUSAL: tl.constexpr, LAST: tl.constexpr):
    if CAUSAL and not LAST:
        tl.store(x_ptr, 0.0)
""",
)
_SIGNS = {ast.And: "&", ast.Or: "|"}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each `and` and `or` with a part that certainly is a block."""
    for node in kernel.nodes:
        if not isinstance(node, ast.BoolOp) or all(kind(one, kernel) < Kind.BLOCK for one in node.values):
            continue
        word, sign = type(node.op).__name__.lower(), _SIGNS[type(node.op)]
        yield Fault(
            node,
            f"`{ast.unparse(node)}` joins blocks with `{word}`, which Triton warns about.",
            f"Write {sign}, with parentheses around each part.",
            fix=f" {sign} ".join(f"({ast.unparse(part)})" for part in node.values),
        )
