"""A parameter of a kernel is never used in it.

It is passed with every launch and looked at when Triton decides whether to compile anew; a stride or a size
that is not used may also be one that was forgotten.

Fix: delete the parameter, or let its name start with an underscore where a common signature asks for
it.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.triton_api.name_scope import parameters_of

SEVERITY = "info"
CATEGORY = "best practices"
_RUN = """
def run(x):
    kernel[(1,)](x, x.numel(), x.stride(0))
"""
BAD = (
    """
@triton.jit
def kernel(x_ptr, n, stride):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
    + _RUN,
    """
@triton.jit
def kernel(x_ptr, n, stride):
    stride = 4
    tl.store(x_ptr + stride, 0.0)
"""
    + _RUN,
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, _stride):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
    + _RUN,
    # The autotuner may look at what the kernel does not.
    """
@triton.autotune([triton.Config({})], key=["n", "stride"])
@triton.jit
def kernel(x_ptr, n, stride):
    tl.store(x_ptr, 0.0)
"""
    + _RUN,
    """
@triton.jit
def kernel(x_ptr, n, KIND: tl.constexpr):
    tl.store(x_ptr + n, 0.0)
"""
    + _RUN,
    """
@triton.jit
def combine(a, b, unused):
    return a + b
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Parameters of a launched kernel that are not tl.constexpr, nor named in a string of the file."""
    if not kernel.is_launched:
        return
    read = {node.id for node in kernel.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for parameter in parameters_of(kernel.node):
        name = parameter.arg
        if name in read | kernel.constexprs or name.startswith("_") or _is_named(name, kernel):
            continue
        yield Fault(
            parameter,
            f"{kernel.node.name} never uses its parameter {name}.",
            f"Delete {name} here and in the launches, or name it _{name}.",
        )


def _is_named(name: str, kernel: SourceKernel) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == name for node in kernel.file.nodes)
