"""A launch passes `tensor.data_ptr()` for a pointer.

That is an integer: the kernel knows neither that it is an address nor the type of what lies there, and
tl.load and tl.store refuse it.

Instead, pass the tensor; Triton takes its address and dtype.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import argument, pointer_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x.data_ptr(), x.numel())
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](n=x.numel(), x_ptr=x.data_ptr())
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.data_ptr() % 16)
""",
    # An address may be passed as a number to a kernel that makes a pointer of it.
    """
@triton.jit
def kernel(address):
    x_ptr = address.to(tl.pointer_type(tl.float32))
    tl.store(x_ptr, 0.0)

def run(x):
    kernel[(1,)](x.data_ptr())
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Arguments `x.data_ptr()` for parameters that the kernel loads from or stores to as they are."""
    pointers = _pointers(kernel)
    for launch in kernel.launches:
        for name, value in _arguments(kernel, launch.call):
            match value:
                case ast.Call(func=ast.Attribute(value=tensor, attr="data_ptr")) if name in pointers:
                    yield Fault(
                        value,
                        f"{name} gets an integer, and {kernel.node.name} uses it as a pointer: "
                        "it does not compile.",
                        f"Pass the tensor: {ast.unparse(tensor)}.",
                    )


def _pointers(kernel: SourceKernel) -> frozenset[str]:
    """The parameters that addresses start from."""
    found = set()
    for path, call in kernel.calls():
        if path in ("triton.language.load", "triton.language.store"):
            address = argument(call, 0, "pointer")
            start = pointer_of(address, kernel.scope, kernel.flow) if address else None
            if start and start.arg in kernel.runtime_parameters:
                found.add(start.arg)
    return frozenset(found)


def _arguments(kernel: SourceKernel, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Each argument with its parameter's name, up to the first `*args`."""
    for name, value in zip(kernel.parameters, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        yield name, value
    for keyword in call.keywords:
        if keyword.arg:
            yield keyword.arg, keyword.value
