"""Which values of a kernel may be as large as the data that it loads."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.source import SourceKernel

Seen = frozenset[ast.AST]


def is_unbounded(kernel: SourceKernel, value: ast.AST) -> bool:
    """Whether a value certainly grows with loaded data: nothing is subtracted and nothing limits it.

    The parameter of a helper does where every call in the file passes such a value.
    """
    return _grows(kernel, value, frozenset()) is True


def _grows(kernel: SourceKernel, value: ast.AST, seen: Seen) -> bool | None:
    """None: a factor or a constant, which says nothing."""
    if isinstance(value, ast.expr):
        value = kernel.bare(value)
    if value in seen:
        return None
    seen = seen | {value}
    match value:
        case ast.Constant() | ast.Attribute():
            return None
        case ast.arg(arg=name):
            kernel = kernel
            if name in kernel.constexprs or kernel.is_launched:
                return None
            passed = [_grows(caller, given, seen) for caller, _, given in kernel.passed(name)]
            return bool(passed) and _all(passed)
        case ast.Name() if held := kernel.definitions(value):
            return _all([_grows(kernel, definition, seen) for definition in held])
        case ast.Name(id=name):
            return None if kernel.scope.find(name) else False
        case ast.UnaryOp() | ast.BinOp() if _is_negated_square(kernel, value):
            return False
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _grows(kernel, operand, seen)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _all([_grows(kernel, one, seen) for one in (left, right)])
        case ast.BinOp(left=left, op=ast.Div(), right=right) if _grows(kernel, right, seen) is None:
            return _grows(kernel, left, seen)
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if kernel.number(right) is not None:
            # Anything but a literal may well be the maximum.
            return _grows(kernel, left, seen)
        case ast.Call():
            return _result_grows(kernel, value, seen)
    return False


def _is_negated_square(kernel: SourceKernel, value: ast.expr) -> bool:
    """Whether the value is a product with a minus sign in which something is squared, `-x * x / 2`."""
    factors = [*_factors(kernel, value)]
    values = [factor for factor in factors if isinstance(factor, ast.expr)]
    is_negated = len(values) < len(factors) or any((kernel.number(one) or 0) < 0 for one in values)
    repeated = len({kernel.key(factor) for factor in factors}) < len(factors)
    terms = (term for value in values for term in kernel.terms(value))
    return is_negated and (repeated or any(kernel.squared(term) is not None for term in terms))


def _factors(kernel: SourceKernel, value: ast.expr) -> Iterator[ast.AST]:
    """The factors of a product or quotient, and a minus sign for each one that is negated."""
    match kernel.bare(value):
        case ast.UnaryOp(op=ast.USub() as minus, operand=operand) if kernel.number(value) is None:
            yield minus
            yield from _factors(kernel, operand)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield from _factors(kernel, left)
            yield from _factors(kernel, right)
        case ast.BinOp(left=left, op=ast.Div()):
            yield from _factors(kernel, left)
        case factor:
            yield factor


def _result_grows(kernel: SourceKernel, call: ast.Call, seen: Seen) -> bool | None:
    made = kernel.operation(call)
    if made is None:
        return None if isinstance(call.func, ast.Name) and call.func.id == "float" else False
    match made.name:
        case "load":
            return True
        case "where" if len(made.operands) == 3:
            return _all([_grows(kernel, operand, seen) for operand in made.operands[1:]])
        case "dot" if len(made.operands) > 1:
            return _all([_grows(kernel, operand, seen) for operand in made.operands[:2]])
        case "sum" | "trans" if made.operands:
            return _grows(kernel, made.operands[0], seen)
        case "zeros" | "full":
            return None
    return False


def _all(parts: list[bool | None]) -> bool | None:
    """True where at least one grows and nothing speaks against any."""
    if False in parts:
        return False
    return True if True in parts else None
