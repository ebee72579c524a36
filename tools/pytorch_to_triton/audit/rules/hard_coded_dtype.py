"""A kernel rounds its result to one low-precision dtype, whatever the output's dtype is.

The output takes the dtype of the input. For a float32 input the values go through float16 all the same: three
digits are left of seven, and what is beyond 65504 becomes infinite.

Fix: cast to what the pointer points to, `x.to(out_ptr.dtype.element_ty)`, or not at all: tl.store casts.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import tensor_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "medium"
CATEGORY = "numerical stability"
_RUN = """
def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    return out
"""
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, (2 * x).to(tl.float16), mask=i < n)
"""
BAD = (
    _KERNEL + _RUN,
    """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 16)
    y = tl.exp(tl.load(x_ptr + i, mask=i < n))
    y = y.to(tl.bfloat16)
    tl.store(out_ptr + i, value=y, mask=i < n)
"""
    + _RUN,
)
GOOD = (
    _KERNEL
    + """
def run(x):
    assert x.dtype == torch.float16
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    return out
""",
    _KERNEL
    + """
def run(x):
    out = torch.empty_like(x, dtype=torch.float16)
    kernel[(1,)](x, out, x.numel())
    return out
""",
    _KERNEL.replace("tl.float16", "out_ptr.dtype.element_ty") + _RUN,
    _KERNEL
    + """
def run(x):
    x = x.half()
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    return out
""",
)
_LOW = {"triton.language.float16": "float16", "triton.language.bfloat16": "bfloat16"}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Stores of values cast to float16 or bfloat16 into outputs made like an input of any dtype."""
    for access in kernel.accesses:
        if access.name != "store" or access.value is None or access.pointer is None:
            continue
        dtype = _cast(kernel.flow.resolved(access.value), kernel) or _last_cast(access.value, kernel)
        if dtype is None:
            continue
        tensors = [_like(launch.given(kernel).get(access.pointer), launch) for launch in kernel.launches]
        if tensors and all(tensors):
            yield Fault(
                access.value,
                f"{access.pointer} has the dtype of {tensors[0]}, and its values are rounded to {dtype}: "
                "float32 inputs lose four digits of seven or more.",
                f"Cast to {access.pointer}.dtype.element_ty.",
            )


def _cast(value: ast.expr, kernel: SourceKernel) -> str | None:
    """The low-precision dtype of `value.to(tl.float16)`."""
    match value:
        case ast.Call(func=ast.Attribute(attr="to"), args=[dtype, *_]):
            return _LOW.get(kernel.scope.path(dtype) or "")
    return None


def _last_cast(value: ast.expr, kernel: SourceKernel) -> str | None:
    """The same for a name whose last assignment, in straight code, is a cast."""
    if not isinstance(value, ast.Name) or not kernel.flow.feeds(value.id):
        return None
    last = kernel.flow.feeds(value.id)[-1]
    straight = not kernel.flow.conditions(last) and not kernel.flow.loops(last)
    is_assigned = isinstance(kernel.flow.parents.get(last), ast.Assign)
    return _cast(last, kernel) if straight and is_assigned and last.lineno < value.lineno else None


def _like(value: ast.expr | None, launch: LaunchSite) -> str | None:
    """The parameter that an output is made like, where nothing in the function fixes a dtype."""
    function = launch.function
    if function is None or value is None or any(_names_dtype(node) for node in own_nodes(function.body)):
        return None
    match launch.flow.resolved(value):
        case ast.Call(func=func, args=[ast.Name(id=name)]) if launch.scope.path(func) == "torch.empty_like":
            return name if name in tensor_parameters(function) else None
    return None


def _names_dtype(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="dtype" | "float16" | "bfloat16" | "half" | "to") | ast.keyword(arg="dtype"):
            return True
    return False
