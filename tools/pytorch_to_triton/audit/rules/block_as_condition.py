"""A block of values decides an `if`, a `while` or `a if c else b`.

A program has one flow of control for its whole block; Triton refuses a condition with more than one
element.

Fix: let tl.where choose single elements and mask= decide what is loaded and stored, or reduce the block
to one value first: `if tl.max(x) > 0`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if i < n:
        tl.store(x_ptr + i, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i).to(tl.float32)
    y = x if x > 0 else 0.0
    tl.store(x_ptr + i, y)
""",
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    x = tl.zeros((B,), tl.float32)
    while x < 3:
        x += 1
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, HAS_BIAS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    if tl.max(x, axis=0) > 0:
        x = tl.where(x > 0, x, 0.0)
    if HAS_BIAS and n > 0:
        tl.store(x_ptr + i, x)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr + tl.program_id(0))
    y = x if x > 0 else 0.0
    if x is not None:
        tl.store(x_ptr, y)
""",
    # One of two things that a flag chooses.
    """
@triton.jit
def kernel(x_ptr, WIDE: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0)
    if WIDE:
        i = tl.arange(0, B)
    else:
        if i < 3:
            tl.store(x_ptr, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr):
    if tl.load(x_ptr + tl.arange(0, 1)) > 0:
        tl.store(x_ptr, 0.0)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each condition that certainly is a block."""
    for node in kernel.nodes:
        if not isinstance(node, ast.If | ast.While | ast.IfExp) or kind(node.test, kernel) != Kind.BLOCK:
            continue
        if not runs_for_sure(node, kernel):
            continue
        condition = ast.unparse(node.test)
        fix = ""
        if isinstance(node, ast.IfExp):
            fix = f"tl.where({condition}, {ast.unparse(node.body)}, {ast.unparse(node.orelse)})"
        yield Fault(
            node if isinstance(node, ast.IfExp) else node.test,
            f"`{condition}` is a block, and Triton does not branch on a block: this does not compile.",
            "Choose elements with tl.where, and pass the condition as mask= to loads and stores.",
            fix=fix,
        )
