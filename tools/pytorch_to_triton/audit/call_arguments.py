"""Reading the arguments of a call without running it."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from pytorch_to_triton.audit.flow import Flow

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument at that position or of that name; None where it is not given or hidden in `*args`."""
    by_name = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    if by_name is not None or position >= len(call.args):
        return by_name
    before = call.args[: position + 1]
    return None if any(isinstance(one, ast.Starred) for one in before) else call.args[position]


def hides_arguments(call: ast.Call) -> bool:
    """Whether `*args`, `**kwargs` or a boundary check decide what is accessed."""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        keyword.arg in (None, "boundary_check") for keyword in call.keywords
    )


def is_new_axis(part: ast.expr) -> bool:
    """`None`"""
    return isinstance(part, ast.Constant) and part.value is None


def only_adds_axes(index: ast.expr) -> bool:
    """`[:, None]` and the like."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(is_new_axis(part) or ast.unparse(part) == ":" for part in parts)


def literal_integer(node: ast.expr | None) -> int | None:
    """What sums and products of literals come to; None for anything else."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = literal_integer(operand)
            return None if negated is None else -negated
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            first, second = literal_integer(left), literal_integer(right)
            if first is not None and second is not None:
                return _ARITHMETIC[type(op)](first, second)
    return None


def pointer_of(address: ast.expr, flow: Flow) -> ast.arg | None:
    """The parameter that an address starts from: x_ptr's for `x_ptr + row * stride + cols`.

    Names are followed, a pointer that a loop moves on among them. None where it may start from anything else.
    """
    seen: set[ast.AST] = set()
    node: ast.AST = address
    while node not in seen:
        seen.add(node)
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub()):
                node = left
            case ast.Name() if len(starts := flow.starts(node)) == 1:
                node = starts[0]
            case ast.arg():
                return node
    return None


def factors(product: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each of the two factors of a product, with the other; nothing of anything else."""
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
        yield product.left, product.right
        yield product.right, product.left
