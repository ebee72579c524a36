"""Calls of Triton's functions and of blocks' methods, under one name."""

import ast
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.triton_functions import METHODS
from pytorch_to_triton.triton_api.name_scope import NameScope

_MODULES = ("math", "standard", "extra.libdevice", "extra.cuda.libdevice", "core")
_FIRST = ("x", "input")
"""The names of the first parameter."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A call of one of Triton's functions or of a block's methods."""

    call: ast.Call
    name: str
    """`exp` for tl.exp(x), tl.math.exp(x), libdevice.exp(x) and x.exp()."""
    operands: tuple[ast.expr, ...]
    """Its positional arguments; the block is the first one of a method."""

    def option(self, position: int, name: str) -> ast.expr | None:
        """The operand at that position, or the keyword of that name."""
        named = next((keyword.value for keyword in self.call.keywords if keyword.arg == name), None)
        return self.operands[position] if named is None and position < len(self.operands) else named


def operation_of(call: ast.Call, scope: NameScope) -> Operation | None:
    """The call as an operation; None where it calls something else."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    path = scope.path(call.func)
    if path and path.startswith("triton.language."):
        name = path.removeprefix("triton.language.")
        for module in _MODULES:
            name = name.removeprefix(f"{module}.")
        first = [keyword.value for keyword in call.keywords if keyword.arg in _FIRST]
        return None if "." in name else Operation(call, name, tuple(call.args or first))
    if path is None and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
        block = call.func.value
        is_local = not isinstance(block, ast.Name) or block.id in scope.bindings
        return Operation(call, call.func.attr, (block, *call.args)) if is_local else None
    return None
