"""A kernel changes a tensor of the caller, and neither its name nor its result says so.

The kernel loads from and stores to a tensor that the caller passed. The caller's data are changed, autograd
does not notice, and a second call starts from other values.

Fix: store to a new tensor, or say so in the name, as PyTorch does: `scale_`.
"""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers, stored, tensor_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Function, SourceFile, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "info"
CATEGORY = "best practices"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
BAD = (
    _KERNEL
    + """
def double(x):
    kernel[(1,)](x, x.numel())
    return x
""",
    _KERNEL
    + """
def double(x):
    kernel[(1,)](n=x.numel(), x_ptr=x)
    return x.sum()
""",
)
GOOD = (
    _KERNEL
    + """
def double_(x):
    kernel[(1,)](x, x.numel())
    return x
""",
    _KERNEL
    + """
def double(x):
    x = x.clone()
    kernel[(1,)](x, x.numel())
    return x
""",
    _KERNEL
    + """
def double(out):
    kernel[(1,)](out, out.numel())
    return out
""",
    _KERNEL
    + """
def double(x):
    'Doubles x in place.'
    kernel[(1,)](x, x.numel())
    return x
""",
)
_SAID = re.compile(r"in[-_ ]?place|overwrit|updat|modif|mutat", re.IGNORECASE)
_OUTPUT = re.compile(
    r"(?:^|_)(?:out|output|dst|result|buf|buffer|cache|state|grad|acc|workspace|d[a-z])(?:_|s?$)|_$"
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Tensors that a function is given, and that a kernel both loads from and stores to."""
    for function, launches in launchers(file).items() if not is_trial(file) else ():
        if _is_said(function, file) or not any(
            isinstance(n, ast.Return) and n.value for n in own_nodes(function.body)
        ):
            continue
        tensors = tensor_parameters(function)
        for launch in launches:
            kernel = file.kernel_of(launch)
            for parameter, value in launch.given(kernel).items() if kernel else ():
                if kernel is None or not isinstance(value, ast.Name) or value.id not in tensors:
                    continue
                if parameter in stored(kernel) & _loaded(kernel) and not _OUTPUT.search(value.id):
                    yield Fault(
                        value,
                        f"{kernel.node.name} changes {value.id}, which the caller of {function.name} passed.",
                        f"Store to a new tensor, or name the function {function.name}_.",
                    )


def _loaded(kernel: SourceKernel) -> frozenset[str]:
    return frozenset(one.pointer for one in kernel.accesses if not one.writes and one.pointer)


def _is_said(function: Function, file: SourceFile) -> bool:
    """Whether the name or the text of the function mentions it, or it is autograd's."""
    last = function.end_lineno or function.lineno
    text = "\n".join(file.lines[function.lineno - 1 : last])
    own = (
        function.name.endswith("_")
        or function.name.startswith("_")
        or function.name in ("forward", "backward")
    )
    return own or bool(_SAID.search(text))
