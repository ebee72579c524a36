"""The first use of each global that holds a plain number, string, tuple, list or dict."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.triton_api.name_scope import Binding

_kernel = example("\n@triton.jit\ndef kernel(x_ptr, n: tl.constexpr = 3):\n")
_FILL = _kernel("tl.store(x_ptr + tl.arange(0, SIZE), 0.0)")
BAD = (
    f"SIZE = 4 * 32\n{_FILL}",
    f"SIZE: tl.constexpr = 128\n{_FILL}",
    "LOWEST = -float('inf')\n" + _kernel("x = tl.load(x_ptr, other=LOWEST)"),
)
GOOD = (
    f"SIZE = tl.constexpr(128)\n{_FILL}",
    "n = NOTHING = None\n" + _kernel("if NOTHING is None:", "    tl.store(x_ptr, n)"),
)


@kernel_rule("critical", "correctness", BAD, GOOD)
def global_not_constexpr(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel reads a global that is not wrapped in tl.constexpr.

    A kernel is compiled once and keeps what it saw, so Triton refuses plain globals. An annotation alone,
    `LOG2E: tl.constexpr = 1.44`, is refused as well. The interpreter accepts both.

    Fix: write `LOG2E = tl.constexpr(1.4426950408889634)`, or pass the value as a tl.constexpr argument.
    """
    reported: set[str] = set()
    for node in kernel.nodes if not kernel.file.is_for_a_fork else ():
        if not isinstance(node, ast.Name) or node.id in reported or not _is_global(node.id, kernel):
            continue
        binding = kernel.scope.find(node.id)
        if binding and _is_plain(binding):
            reported.add(node.id)
            yield Fault(
                node,
                f"Triton refuses the global {node.id} in a kernel: it is not a tl.constexpr.",
                f"Write `{node.id} = tl.constexpr(...)`, or pass it as an argument.",
            )


def _is_global(name: str, kernel: SourceKernel) -> bool:
    return kernel.scope.holder(name) is kernel.file.scope


def _is_plain(binding: Binding) -> bool:
    """Whether it is assigned a value that only Python knows; None is allowed in kernels."""
    match binding.value:
        case None | ast.Constant(value=None):
            return False
        case value:
            return _is_literal(value)


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Tuple() | ast.List() | ast.Dict():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_literal(operand)
        case ast.BinOp(left=left, right=right):
            return _is_literal(left) and _is_literal(right)
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[ast.Constant()]):
            return True
    return False
