"""A kernel that is launched returns a value.

Launches return nothing, and a kernel that returns a tensor does not compile for a GPU. The interpreter
silently drops the value.

Fix: store results through a pointer, and let only functions that kernels call return values.
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
def kernel(x_ptr, n):
    i = tl.arange(0, 16)
    return tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))

def run(x):
    return kernel[(1,)](x, x.numel())
""",
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.store(x_ptr, tl.sum(x))
    return x, x + 1

def run(x):
    kernel[(1,)](x, 16)
""",
)
GOOD = (
    """
@triton.jit
def total(x_ptr):
    return tl.sum(tl.load(x_ptr + tl.arange(0, 16)))

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, total(x_ptr))

def run(x):
    kernel[(1,)](x)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    if tl.program_id(0) >= n:
        return
    tl.store(x_ptr, 0.0)
    return None

def run(x):
    kernel[(1,)](x, 1)
""",
    """
@triton.jit
def kernel(x_ptr, INLINE: tl.constexpr):
    x = tl.load(x_ptr)
    if INLINE:
        return x
    tl.store(x_ptr, x)

def run(x):
    kernel[(1,)](x, False)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each `return` of what only a run knows, in kernels that the file launches."""
    for node in kernel.nodes if kernel.launches else ():
        if not isinstance(node, ast.Return) or node.value is None or not runs_for_sure(node, kernel):
            continue
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if any(kind(value, kernel) > Kind.UNKNOWN for value in values):
            yield Fault(
                node,
                f"{kernel.node.name} is launched and returns `{ast.unparse(node.value)}`: "
                "a launch returns nothing, and the kernel does not compile.",
                "Store the value through a pointer.",
            )
