"""Which values of a kernel may be as large as the data that it loads."""

import ast

from pytorch_to_triton.audit.arithmetic import Values


def is_unbounded(values: Values, value: ast.AST) -> bool:
    """Whether a value certainly grows with loaded data: nothing is subtracted from it and nothing limits it."""
    return _grows(values, value, set()) is True


def _grows(values: Values, value: ast.AST, seen: set[ast.AST]) -> bool | None:
    """None: a factor or a constant, which says nothing."""
    if isinstance(value, ast.expr):
        value = values.bare(value)
    if value in seen:
        return None
    seen = seen | {value}
    match value:
        case ast.Constant() | ast.Attribute():
            return None
        case ast.arg(arg=name):
            return None if name in values.kernel.constexprs or values.kernel.is_launched else False
        case ast.Name() if held := values.definitions(value):
            return _all([_grows(values, one, seen) for one in held])
        case ast.Name(id=name):
            return None if values.kernel.scope.find(name) else False
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _grows(values, operand, seen)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _all([_grows(values, one, seen) for one in (left, right)])
        case ast.BinOp(left=left, op=ast.Sub() | ast.Div(), right=right):
            # Less something that depends on the data may well be less its maximum.
            return _grows(values, left, seen) if _grows(values, right, seen) is None else False
        case ast.Call():
            return _result_grows(values, value, seen)
    return False


def _result_grows(values: Values, call: ast.Call, seen: set[ast.AST]) -> bool | None:
    found = values.operation(call)
    if found is None:
        return None if isinstance(call.func, ast.Name) and call.func.id == "float" else False
    match found.name:
        case "load":
            return True
        case "where" if len(found.operands) == 3:
            return _all([_grows(values, one, seen) for one in found.operands[1:]])
        case "dot" if len(found.operands) > 1:
            return _all([_grows(values, one, seen) for one in found.operands[:2]])
        case "sum" | "trans" if found.operands:
            return _grows(values, found.operands[0], seen)
        case "zeros" | "full":
            return None
    return False


def _all(parts: list[bool | None]) -> bool | None:
    """True where at least one grows and nothing speaks against any."""
    if False in parts:
        return False
    return True if True in parts else None
