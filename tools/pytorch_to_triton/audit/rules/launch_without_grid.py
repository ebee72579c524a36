"""Kernels that host code calls as it would a Python function."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import Function, SourceFile
from pytorch_to_triton.triton_api.name_scope import NameScope, own_nodes

_KERNEL = "\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 0.0)\n"
_EXPECTED = ast.With | ast.Try | ast.TryStar


@file_rule(
    "critical",
    "correctness",
    bad=(f"{_KERNEL}\ndef run(x):\n    kernel(x)\n",),
    good=(
        f"{_KERNEL}\ndef run(kernel, x):\n    kernel(x)\n",
        f"@pointwise{_KERNEL}\ndef run(x):\n    kernel(x)\n",
        # A function that is made a kernel later.
        f"{_KERNEL}\ndef outer(x_ptr):\n    kernel(x_ptr + tl.program_id(0))\n",
    ),
)
def launch_without_grid(file: SourceFile) -> Iterator[Fault]:
    """A kernel is called like a Python function, without a grid.

    A @triton.jit function that host code calls raises an error: Triton has to know how many programs to run.

    Fix: put the grid in brackets between the name and the arguments: `kernel[(triton.cdiv(n, 128),)](...)`.
    """
    kernels = {kernel.node for kernel in file.kernels if kernel.plain}
    for function, scope in file.functions:
        if function in kernels or not _is_host(function, scope):
            continue
        outer = (node for node in own_nodes(function.body) if isinstance(node, _EXPECTED))
        expected = {inner for node in outer for inner in ast.walk(node)}
        for node in own_nodes(function.body):
            match node:
                case ast.Call(func=ast.Name(id=name)) if node not in expected:
                    binding = scope.find(name)
                    if binding and binding.node in kernels:
                        yield Fault(
                            node,
                            f"{function.name} calls the kernel {name} without a grid; Triton refuses that.",
                            f"Write {name}[grid](...), where grid is a tuple of one to three numbers.",
                        )


def _is_host(function: Function, scope: NameScope) -> bool:
    """Whether it runs on the CPU: no decorator that may compile it, and nothing of triton.language in it."""
    if any(ast.unparse(one) not in ("staticmethod", "torch.no_grad()") for one in function.decorator_list):
        return False
    paths = (scope.path(node) for node in own_nodes(function.body) if isinstance(node, ast.Attribute))
    return not any(path and path.startswith("triton.language.") for path in paths)
