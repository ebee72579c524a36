"""Reading the arguments of a call without running it."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence

from pytorch_to_triton.audit.flow import Flow
from pytorch_to_triton.triton_api.name_scope import NameScope

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_SHAPED = ("zeros", "full")
_RESHAPING = ("broadcast_to", "reshape", "view")


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


def range_end(node: ast.AST, scope: NameScope) -> ast.expr | None:
    """Where a tl.arange ends; None of anything else."""
    is_range = isinstance(node, ast.Call) and scope.path(node.func) == "triton.language.arange"
    return argument(node, 1, "end") if isinstance(node, ast.Call) and is_range else None


def index_parts(index: ast.expr) -> list[ast.expr]:
    """`None` and `:` of `[None, :]`."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def is_new_axis(part: ast.expr) -> bool:
    """`None`"""
    return isinstance(part, ast.Constant) and part.value is None


def is_whole_axis(part: ast.expr) -> bool:
    """`:`"""
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def only_adds_axes(index: ast.expr) -> bool:
    """`[:, None]` and the like."""
    return all(is_new_axis(part) or is_whole_axis(part) for part in index_parts(index))


def shape_of(path: str, call: ast.Call) -> Sequence[ast.expr]:
    """The sizes that a call of triton.language spells out for a new block; empty where it does not."""
    function = path.removeprefix("triton.language.")
    if function in _SHAPED:
        shape = argument(call, 0, "shape")
    elif function in _RESHAPING and len(call.args) > 2:
        return call.args[1:]
    elif function in _RESHAPING:
        shape = argument(call, 1, "shape")
    else:
        shape = None
    return shape.elts if isinstance(shape, ast.Tuple | ast.List) else ()


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


def pointer_of(address: ast.expr, scope: NameScope, flow: Flow) -> ast.arg | None:
    """The parameter that an address starts from: x_ptr's for `x_ptr + row * stride + cols`.

    Names are followed, a pointer that a loop moves on among them. None where it may start from anything else.
    """
    seen: set[str] = set()
    node = address
    while True:
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub()):
                node = left
            case ast.Name(id=name) if name not in seen and name in scope.bindings:
                seen.add(name)
                parameter, *others = [binding.node for binding in scope.bindings[name]]
                if isinstance(parameter, ast.arg):
                    return parameter if not others or _only_moves(name, flow) else None
                first, *more = flow.feeds(name) or (None,)
                if first is None or not all(_moves(name, one) for one in more if not _is_step(one, flow)):
                    return None
                node = first
            case _:
                return None


def _only_moves(name: str, flow: Flow) -> bool:
    """Whether each assignment of a name only adds to it."""
    return all(_moves(name, value) or _is_step(value, flow) for value in flow.feeds(name))


def _moves(name: str, value: ast.expr) -> bool:
    """`name + ...`"""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        value = value.left
    return isinstance(value, ast.Name) and value.id == name


def _is_step(value: ast.expr, flow: Flow) -> bool:
    """What `name += value` adds."""
    around = flow.parents.get(value)
    return isinstance(around, ast.AugAssign) and isinstance(around.op, ast.Add | ast.Sub)
