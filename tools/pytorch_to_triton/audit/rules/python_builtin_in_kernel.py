"""A kernel calls a Python function that Triton does not know.

Within kernels Triton knows min, max, range, len, float, int and few others; abs, sum, round, pow, zip or
enumerate raise NameError when the kernel is compiled, and float() and int() take no tensors. The
interpreter runs all of them.

Fix: use tl.abs, tl.sum, tl.floor and `x.to(tl.float32)`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
""")
BAD = (
    _kernel("i = tl.arange(0, 16)", "tl.store(x_ptr + i, abs(tl.load(x_ptr + i)))"),
    _kernel(
        "x = tl.load(x_ptr + tl.arange(0, 16))",
        "tl.store(x_ptr, sum(x))",
        "tl.store(x_ptr + 1, round(tl.load(x_ptr)))",
    ),
    _kernel("x = float(tl.load(x_ptr))", "tl.store(x_ptr, int(x * 2))"),
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, SCALE: tl.constexpr):
    x = tl.abs(tl.load(x_ptr)) * float(SCALE)
    tl.store(x_ptr, max(x, min(n, int(SCALE))) - float("inf"))
""",
    """
@triton.jit
def abs(x):
    return tl.where(x > 0, x, -x)

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, abs(tl.load(x_ptr)))
""",
    """
@triton.jit
def kernel(x_ptr, sum):
    tl.store(x_ptr, sum)

def run(x):
    kernel[(1,)](x, sum(x.shape))
""",
    """
from triton.language import abs

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, abs(tl.load(x_ptr)))
""",
)
_REPLACEMENTS = {
    "abs": "tl.abs",
    "sum": "tl.sum",
    "pow": "libdevice.pow from triton.language.extra",
    "round": "libdevice.rint from triton.language.extra, or tl.floor(x + 0.5)",
    "bool": "a comparison, `x != 0`",
    "any": "tl.max of the condition as integers",
    "all": "tl.min of the condition as integers",
    "sorted": "tl.sort",
    "enumerate": "tl.static_range and an index",
    "zip": "tl.static_range and an index",
    "reversed": "tl.static_range with a step of -1",
    "divmod": "// and %",
    "map": "a loop over tl.static_range",
    "filter": "tl.where",
}
_CASTS = {"float": "tl.float32", "int": "tl.int32"}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Calls of functions that Triton does not have, and of float() and int() on what only a run knows."""
    for node in kernel.nodes:
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if not kernel.scope.holder(name):
                pass
            case _:
                continue
        if not runs_for_sure(node, kernel):
            continue
        if name in _REPLACEMENTS:
            yield Fault(node, f"Triton does not know {name}() in a kernel.", f"Use {_REPLACEMENTS[name]}.")
        elif name in _CASTS and len(args) == 1 and kind(args[0], kernel) > Kind.UNKNOWN:
            value = ast.unparse(args[0])
            simple = isinstance(args[0], ast.Name | ast.Call | ast.Subscript)
            yield Fault(
                node,
                f"{name}() takes no tensor: `{ast.unparse(node)}` does not compile.",
                f"Use .to({_CASTS[name]}).",
                fix=f"{value if simple else f'({value})'}.to({_CASTS[name]})",
            )
