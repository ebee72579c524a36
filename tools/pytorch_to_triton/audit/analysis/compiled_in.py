"""Which parameters a kernel has to know when it is compiled."""

import ast

from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceKernel

_COMPILED = frozenset(
    {"arange", "zeros", "full", "static_range", "static_assert", "reshape", "view", "broadcast_to"}
)
_FILLED = frozenset({"zeros", "full"})
"""Of these only the shape has to be known."""
_BUILTINS = frozenset({"range", "min", "max"})


def is_compiled_in(kernel: SourceKernel, name: str) -> bool:
    """Whether a parameter decides shapes or branches, or leaves the kernel's sight."""
    # What is loaded is known to a run only, wherever it was loaded from.
    loads = {access.call for access in kernel.accesses}
    for node in kernel.nodes:
        match node:
            case ast.Call():
                if name in kernel.flow.parameters(
                    *_constant_arguments(node, kernel), stop=loads.__contains__
                ):
                    return True
            case ast.If(test=test) | ast.IfExp(test=test):
                if name in kernel.flow.parameters(test, stop=loads.__contains__):
                    return True
    return False


def _constant_arguments(call: ast.Call, kernel: SourceKernel) -> list[ast.expr]:
    """The arguments of a call that have to be known when the kernel is compiled, or may have to be."""
    path = kernel.scope.path(call.func)
    function = (path or "").rpartition(".")[2]
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if path is not None and path.startswith("triton."):
        shape = argument(call, 0, "shape")
        return [shape] if function in _FILLED and shape else given if function in _COMPILED else []
    builtin = isinstance(call.func, ast.Name) and call.func.id in _BUILTINS
    method = path is None and isinstance(call.func, ast.Attribute)
    return [] if builtin or method else given
