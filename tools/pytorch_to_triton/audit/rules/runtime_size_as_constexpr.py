"""A size that varies from call to call is passed as tl.constexpr.

The kernel is compiled for each value of a tl.constexpr. A number of rows or of elements takes many values,
and each new one stops the program for the seconds that compiling takes.

Instead, make it an ordinary parameter: masks, loops and addresses work with it just the same.
"""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.passed import Extent, size_of
from pytorch_to_triton.audit.source import Kernel, Launch
from pytorch_to_triton.audit.tensors import callers_parameters, rank_of, text_of

SEVERITY = "medium"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    f"""
{_KERNEL}
def run(x):
    kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), B=64)
""",
    f"""
{_KERNEL}
def run(x):
    rows, cols = x.shape
    kernel[(1,)](x, n=rows, B=64)
""",
    f"""
{_KERNEL}
def run(x):
    n = x.shape[0]
    assert x.dim() == 2
    kernel[(1,)](x, n, 64)
""",
)
GOOD = (
    f"""
{_KERNEL.replace("n: tl.constexpr", "n")}
def run(x):
    kernel[(1,)](x, x.numel(), B=64)
""",
    # The block has that size.
    """
@triton.jit
def kernel(x_ptr, n: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), 0.0)

def run(x):
    kernel[(1,)](x, x.numel())
""",
    # One compilation for many sizes.
    f"""
{_KERNEL}
def run(x):
    kernel[(1,)](x, triton.next_power_of_2(x.numel()), B=64)
""",
    # The model's width.
    f"""
{_KERNEL}
def run(x, weight):
    rows, cols = x.shape
    kernel[(1,)](x, cols, B=64)
    kernel[(1,)](weight, weight.shape[0], B=64)
""",
    # Handed on, and who knows what for.
    """
@triton.jit
def fill(x_ptr, n: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), 0.0)

@triton.jit
def kernel(x_ptr, n: tl.constexpr):
    fill(x_ptr, n)

def run(x):
    kernel[(1,)](x, x.numel())
""",
)
_OF_A_MODEL = re.compile(
    r"weight|bias|expert|embed|(?:^|_|\.)"
    r"(?:w\d*|b|gamma|beta|cos|sin|params?|table|kernel|filters?|lora\w*|cache|scales?)(?:_|$|\.)",
    re.IGNORECASE,
)
"""Names of tensors whose sizes a model fixes."""
_COMPILED = ("arange", "zeros", "full", "static_range", "static_assert", "reshape", "view", "broadcast_to")


def check(kernel: Kernel) -> Iterator[Fault]:
    """Numbers of rows and of elements of the callers' tensors, in kernels that need them at run time only."""
    told: set[str] = set()
    for launch in kernel.launches:
        for name in (one for one in kernel.parameters if one in kernel.constexprs - told):
            given = launch.given(kernel).get(name)
            size = size_of(given, launch) if given is not None else None
            if size and _varies(size, launch) and not _is_compiled_in(kernel, name):
                told.add(name)
                yield Fault(
                    given or launch.call,
                    f"{name} of {kernel.node.name} is tl.constexpr and gets {text_of(size)}: each new value "
                    "compiles the kernel anew.",
                    f"Declare it as `{name}` without tl.constexpr.",
                )


def _varies(size: Extent, launch: Launch) -> bool:
    """A first axis of several, or all elements, of a tensor that the caller passes and no model fixes."""
    if size.tensor not in callers_parameters(launch) or _OF_A_MODEL.search(size.tensor):
        return False
    rank = rank_of(size.tensor, launch)
    return size.axis is None or (size.axis == 0 and rank != 1)


def _is_compiled_in(kernel: Kernel, name: str) -> bool:
    """Whether the value decides shapes or branches, or leaves the kernel's sight."""
    for node in kernel.nodes:
        match node:
            case ast.Call(func=func, args=arguments, keywords=keywords):
                path = kernel.scope.path(func)
                known = path is not None and path.startswith("triton.")
                builtin = isinstance(func, ast.Name) and func.id in ("range", "min", "max")
                compiled = known and (path or "").rpartition(".")[2] in _COMPILED
                method = path is None and isinstance(func, ast.Attribute)
                opaque = not known and not builtin and not method
                values = [*arguments, *(keyword.value for keyword in keywords)]
                if (compiled or opaque) and name in kernel.flow.parameters(*values):
                    return True
            case ast.If(test=test) | ast.IfExp(test=test) if name in kernel.flow.parameters(test):
                return True
    return False
