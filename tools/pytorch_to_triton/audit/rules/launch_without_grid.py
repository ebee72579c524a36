"""Calls of kernels of the file in functions that certainly are no kernels themselves."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import Function, SourceFile
from pytorch_to_triton.triton_api.name_scope import NameScope, own_nodes

_KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    kernel(x, x.numel(), BLOCK=128)
    return x
""",
)
GOOD = (
    _KERNEL
    + """
def run(kernel, x):
    kernel(x)
""",
)
_HOST_ONLY = frozenset({"torch.no_grad", "torch.inference_mode", "torch.compile", "functools.wraps"})
_BUILT_IN = frozenset({"staticmethod", "classmethod", "property"})
_EXPECTED = ast.With | ast.Try | ast.TryStar


@file_rule("critical", "correctness", BAD, GOOD)
def launch_without_grid(file: SourceFile) -> Iterator[Fault]:
    """A kernel is called like a Python function, without a grid.

    A @triton.jit function that host code calls raises an error: Triton has to know how many programs to
    run.

    Fix: put the grid in brackets between the name and the arguments: `kernel[(triton.cdiv(n, 128),)](...)`.
    """
    kernels = {kernel.node: kernel for kernel in file.kernels if kernel.plain}
    for function, scope in file.functions:
        if function in kernels or not _is_host(function, scope):
            continue
        expected = {
            id(node)
            for outer in own_nodes(function.body)
            if isinstance(outer, _EXPECTED)
            for node in ast.walk(outer)
        }
        for node in own_nodes(function.body):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or id(node) in expected:
                continue
            binding = scope.find(node.func.id)
            if binding and binding.node in kernels:
                name = node.func.id
                yield Fault(
                    node,
                    f"{function.name} calls the kernel {name} without a grid; Triton refuses that.",
                    f"Write {name}[grid](...), where grid is a tuple of one to three numbers of programs.",
                )


def _is_host(function: Function, scope: NameScope) -> bool:
    """Whether it runs on the CPU: no decorator that may compile it, and nothing of triton.language in it."""
    around = scope.parent or scope
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        is_built_in = isinstance(target, ast.Name) and target.id in _BUILT_IN
        if not is_built_in and around.path(target) not in _HOST_ONLY:
            return False
    paths = (scope.path(node) for node in own_nodes(function.body) if isinstance(node, ast.Attribute))
    return not any(path and path.startswith("triton.language.") for path in paths)
