"""A kernel loads a value that nothing uses.

The compiler drops the load. Perhaps a scale, a bias or a residual was to be applied, or the line was
forgotten when the kernel changed.

Fix: use the value, or delete the load and its pointer.
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
def kernel(x_ptr, flag_ptr):
""")
BAD = (
    """
@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    bias = tl.load(bias_ptr + i).to(tl.float32)
    tl.store(out_ptr + i, x)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr):
    scale, shift = tl.load(x_ptr), tl.load(x_ptr + 1)
    tl.store(out_ptr, scale)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    for k in range(4):
        x += tl.load(x_ptr + k)
    tl.store(out_ptr + i, x)
""",
    _kernel("_ = tl.load(flag_ptr)", "seen = tl.load(flag_ptr, volatile=True)", "tl.store(x_ptr, 0.0)"),
    _kernel('seen = tl.load(flag_ptr, cache_modifier=".cg")', "tl.store(x_ptr, 0.0)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Names that are given loads alone and never read."""
    read = {node.id for node in kernel.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    loads = {access.call for access in kernel.accesses if access.name == "load" and _is_ordinary(access.call)}
    for name in kernel.scope.bindings:
        values = kernel.flow.feeds(name)
        if name in read or name.startswith("_") or not values:
            continue
        if all(_without_cast(value) in loads for value in values):
            yield Fault(
                values[0],
                f"{name} is loaded and never used in {kernel.node.name}.",
                f"Use {name}, or delete the load.",
            )


def _without_cast(value: ast.expr) -> ast.expr:
    """`x` of `x.to(...)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        value = value.func.value
    return value


def _is_ordinary(call: ast.Call) -> bool:
    """Whether it is loaded for its value: neither volatile nor for the sake of a cache."""
    return not {keyword.arg for keyword in call.keywords} & {"volatile", "cache_modifier", "eviction_policy"}
