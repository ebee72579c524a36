"""A kernel's block size is a number in its body.

It cannot be tuned or changed from outside, and it has to agree with the grid, which another function
computes.

Instead, take it as a tl.constexpr parameter, and let the launch or triton.autotune choose it.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "info"
CATEGORY = "best practices"
BAD = (
    """
@triton.jit
def kernel(x_ptr, n):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(x_ptr + i, 0.0, mask=i < n)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    BLOCK = 256
    i = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)
""",
    # A table of a fixed size.
    """
@triton.jit
def kernel(x_ptr, n):
    i = tl.program_id(0) * n + tl.arange(0, 64)
    tl.store(x_ptr + i, 0.0)
""",
    """
@triton.jit
def histogram(x, B: tl.constexpr):
    return tl.sum((x[:, None] == tl.arange(0, 256)[None, :]).to(tl.int32), axis=0)
""",
)

_LEAST = 32
"""Smaller blocks are parts of an algorithm rather than a choice."""


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """The first tl.arange of a literal length by which the kernel also multiplies its program's number."""
    steps = {step for node in kernel.nodes if isinstance(node, ast.BinOp) for step in _steps(kernel, node)}
    for path, call in kernel.calls():
        size = argument(call, 1, "end") if path == "triton.language.arange" else None
        length = None if size is None else literal_integer(kernel.flow.resolved(size))
        if length is not None and length >= _LEAST and length in steps:
            yield Fault(
                call,
                f"The block size {length} is fixed in the body of {kernel.node.name}: its launches can "
                "neither tune it nor see it.",
                "Make it a parameter, `BLOCK_SIZE: tl.constexpr`, and pass it with the launch.",
            )
            return


def _steps(kernel: SourceKernel, product: ast.BinOp) -> Iterator[int]:
    """The number that a program's own number is multiplied with."""
    if not isinstance(product.op, ast.Mult):
        return
    for program, factor in ((product.left, product.right), (product.right, product.left)):
        step = literal_integer(kernel.flow.resolved(factor))
        calls = (path for path, _ in kernel.flow.calls(program))
        if step is not None and "triton.language.program_id" in calls:
            yield step
