"""Which integers of a kernel are certainly 64 bits wide."""

import ast

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.definitions import Definition
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceKernel

_INTEGER = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod
_INT64 = "triton.language.int64"
_EITHER = ("maximum", "minimum")
_KEEPS = ("reshape", "view", "broadcast_to", "expand_dims", "trans", "abs", "max", "min", "sum")


def is_int64(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether a value is certainly int64, or something wider where it meets a float or a pointer."""
    return _is_int64(value, values(kernel), frozenset())


def _is_int64(value: Definition, found: KernelValues, seen: frozenset[ast.AST]) -> bool:
    if value in seen:
        # What a loop carries keeps its type: the value that it starts with decides.
        return True
    seen = seen | {value}
    match value:
        case ast.Name():
            held = found.definitions(value)
            return bool(held) and all(_is_int64(one, found, seen) for one in held)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _INTEGER):
            return _is_int64(left, found, seen) or _is_int64(right, found, seen)
        case ast.Subscript(value=block, slice=ast.Tuple()):
            return _is_int64(block, found, seen)
        case ast.Call() if called := found.operation(value):
            return _is_made_int64(called, found, seen)
    return False


def _is_made_int64(called: Operation, found: KernelValues, seen: frozenset[ast.AST]) -> bool:
    match called.name:
        case "to" | "cast":
            return _names_int64(called.option(1, "dtype"), found)
        case "zeros":
            return _names_int64(argument(called.call, 1, "dtype"), found)
        case "full":
            return _names_int64(argument(called.call, 2, "dtype"), found)
        case "where" if len(called.operands) == 3:
            return any(_is_int64(one, found, seen) for one in called.operands[1:])
        case name if name in _EITHER and len(called.operands) >= 2:
            return any(_is_int64(one, found, seen) for one in called.operands[:2])
        case name if name in _KEEPS and called.operands:
            return _is_int64(called.operands[0], found, seen)
    return False


def _names_int64(dtype: ast.expr | None, found: KernelValues) -> bool:
    return dtype is not None and found.kernel.scope.path(dtype) == _INT64
