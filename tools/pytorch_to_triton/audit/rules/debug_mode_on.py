"""A kernel is compiled in debug mode.

`debug=True` compiles tl.device_assert and checks of integer overflow into the kernel: more instructions and
more registers at every launch.

Fix: leave it off, and set TRITON_DEBUG=1 for the run that is debugged.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "performance"
BAD = (
    """
@triton.jit(debug=True)
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x):
    kernel[(1,)](x, debug=True)
""",
)
GOOD = (
    """
@triton.jit(debug=False)
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr, debug: tl.constexpr):
    tl.store(x_ptr, 0.0)

def run(x):
    kernel[(1,)](x, debug=True)
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 0.0)

def run(x, debug):
    kernel[(1,)](x, debug=debug)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """`debug=True` in the decorator or in a launch."""
    if is_trial(kernel.file) or "debug" in kernel.parameters:
        return
    calls = [one for one in kernel.decorators.values() if isinstance(one, ast.Call)]
    calls += [launch.call for launch in kernel.launches]
    for call in calls:
        for keyword in call.keywords:
            match keyword:
                case ast.keyword(arg="debug", value=ast.Constant(value=True)):
                    message = f"{kernel.node.name} is compiled with assertions and overflow checks."
                    yield Fault(keyword, message, "Leave debug=True out.")
