"""Which values of a kernel may be as large as the data that it loads."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceKernel

Seen = frozenset[ast.AST]


def is_unbounded(known: KernelValues, value: ast.AST) -> bool:
    """Whether a value certainly grows with loaded data: nothing is subtracted and nothing limits it.

    The parameter of a helper does where every call in the file passes such a value.
    """
    return _grows(known, value, frozenset()) is True


def calls_of(kernel: SourceKernel) -> Iterator[tuple[KernelValues, ast.Call]]:
    """Where other kernels of the file call this one, each with the values of its caller."""
    name = kernel.node.name
    for caller in kernel.file.kernels:
        for node in caller.nodes:
            match node:
                case ast.Call(func=ast.Name(id=called)) if called == name:
                    binding = caller.scope.find(name)
                    if binding and binding.node is kernel.node:
                        yield values(caller), node


def _grows(known: KernelValues, value: ast.AST, seen: Seen) -> bool | None:
    """None: a factor or a constant, which says nothing."""
    if isinstance(value, ast.expr):
        value = known.bare(value)
    if value in seen:
        return None
    seen = seen | {value}
    match value:
        case ast.Constant() | ast.Attribute():
            return None
        case ast.arg(arg=name):
            kernel = known.kernel
            if name in kernel.constexprs or kernel.is_launched:
                return None
            return _passed_grows(kernel, name, seen)
        case ast.Name() if held := known.definitions(value):
            return _all([_grows(known, definition, seen) for definition in held])
        case ast.Name(id=name):
            return None if known.kernel.scope.find(name) else False
        case ast.UnaryOp() | ast.BinOp() if _is_negated_square(known, value):
            return False
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _grows(known, operand, seen)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _all([_grows(known, one, seen) for one in (left, right)])
        case ast.BinOp(left=left, op=ast.Div(), right=right) if _grows(known, right, seen) is None:
            return _grows(known, left, seen)
        case ast.BinOp(left=left, op=ast.Sub(), right=right) if known.number(right) is not None:
            # Anything but a literal may well be the maximum.
            return _grows(known, left, seen)
        case ast.Call():
            return _result_grows(known, value, seen)
    return False


def _is_negated_square(known: KernelValues, value: ast.expr) -> bool:
    """Whether the value is a product with a minus sign in which something is squared, `-x * x / 2`."""
    factors = [*_factors(known, value)]
    is_negated = any(isinstance(factor, ast.USub) or _is_negative(known, factor) for factor in factors)
    repeated = len({known.key(factor) for factor in factors}) < len(factors)
    return is_negated and (repeated or any(_has_square(known, factor) for factor in factors))


def _factors(known: KernelValues, value: ast.expr) -> Iterator[ast.AST]:
    """The factors of a product or quotient, and a minus sign for each one that is negated."""
    match known.bare(value):
        case ast.UnaryOp(op=ast.USub() as minus, operand=operand) if known.number(value) is None:
            yield minus
            yield from _factors(known, operand)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield from _factors(known, left)
            yield from _factors(known, right)
        case ast.BinOp(left=left, op=ast.Div()):
            yield from _factors(known, left)
        case factor:
            yield factor


def _is_negative(known: KernelValues, factor: ast.AST) -> bool:
    number = known.number(factor) if isinstance(factor, ast.expr) else None
    return number is not None and number < 0


def _has_square(known: KernelValues, factor: ast.AST) -> bool:
    terms = known.terms(factor) if isinstance(factor, ast.expr) else ()
    return any(known.squared(term) is not None for term in terms)


def _passed_grows(kernel: SourceKernel, name: str, seen: Seen) -> bool | None:
    """Whether all calls of a helper pass a value that grows for a parameter."""
    place = kernel.parameters.index(name)
    passed = [(caller, argument(call, place, name)) for caller, call in calls_of(kernel)]
    known = [_grows(caller, value, seen) for caller, value in passed if value is not None]
    return bool(known) and _all(known)


def _result_grows(known: KernelValues, call: ast.Call, seen: Seen) -> bool | None:
    made = known.operation(call)
    if made is None:
        return None if isinstance(call.func, ast.Name) and call.func.id == "float" else False
    match made.name:
        case "load":
            return True
        case "where" if len(made.operands) == 3:
            return _all([_grows(known, operand, seen) for operand in made.operands[1:]])
        case "dot" if len(made.operands) > 1:
            return _all([_grows(known, operand, seen) for operand in made.operands[:2]])
        case "sum" | "trans" if made.operands:
            return _grows(known, made.operands[0], seen)
        case "zeros" | "full":
            return None
    return False


def _all(parts: list[bool | None]) -> bool | None:
    """True where at least one grows and nothing speaks against any."""
    if False in parts:
        return False
    return True if True in parts else None
