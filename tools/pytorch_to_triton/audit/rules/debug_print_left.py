"""A kernel prints.

Every program prints its values through a buffer that the CPU empties: a launch becomes slower by orders of
magnitude, and the printing code takes registers. A Python print in a kernel is tl.device_print.

Fix: delete it; the interpreter (TRITON_INTERPRET=1) prints whole blocks without a trace in the kernel.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "best practices"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
""")
BAD = (
    _kernel("x = tl.load(x_ptr)", 'tl.device_print("x", x)'),
    _kernel("x = tl.load(x_ptr)", 'print("x", x)'),
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    tl.static_assert(B > 1)
    tl.device_assert(tl.load(x_ptr) > 0)

def run(x):
    kernel[(1,)](x, 16)
    print(x)
""",
    """
@triton.jit
def kernel(x_ptr, DEBUG: tl.constexpr):
    if DEBUG:
        tl.device_print("x", tl.load(x_ptr))
""",
    """
@triton.jit
def print(x):
    return x

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, print(1.0))
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Prints that no condition guards."""
    for node in kernel.nodes:
        if not isinstance(node, ast.Call) or kernel.flow.conditions(node):
            continue
        is_python = isinstance(node.func, ast.Name) and node.func.id == "print"
        is_python = is_python and kernel.scope.holder("print") is None
        if is_python or kernel.scope.path(node.func) == "triton.language.device_print":
            yield Fault(
                node,
                f"{kernel.node.name} prints in every program, which slows each launch.",
                "Delete it, or guard it with a tl.constexpr flag.",
            )
