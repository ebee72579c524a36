"""A breakpoint is left in a file with kernels.

The program stops there and waits for someone at a terminal; in a kernel, breakpoint() does not compile.

Fix: delete it.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "medium"
CATEGORY = "best practices"
BAD = (
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x):
    kernel[(1,)](x)
    breakpoint()
    return x
""",
    """
import pdb

@triton.jit
def kernel(x_ptr):
    pdb.set_trace()
    tl.store(x_ptr, 0.0)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x, breakpoint):
    kernel[(1,)](x)
    breakpoint()
""",
    """
def run(x):
    breakpoint()
""",
    """
from signal import set_trace

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x):
    set_trace()
""",
)
_BREAKS = frozenset({"pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "IPython.embed"})


def check(file: SourceFile) -> Iterator[Fault]:
    """Calls of breakpoint() and of debuggers, in the file's functions and at its top."""
    if not file.kernels:
        return
    inner = ((function.body, scope) for function, scope in file.functions)
    for body, scope in ((file.tree.body, file.scope), *inner):
        for node in own_nodes(body):
            if not isinstance(node, ast.Call):
                continue
            is_plain = isinstance(node.func, ast.Name) and node.func.id == "breakpoint"
            if scope.path(node.func) in _BREAKS or (is_plain and scope.holder("breakpoint") is None):
                yield Fault(node, f"`{ast.unparse(node)}` stops the program here.", "Delete it.")
