"""What the lanes hold that the mask of a load left out, and means that count them."""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytorch_to_triton.audit.call_arguments import factors, is_new_axis, literal_integer
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "abs": abs,
    "sqrt": math.sqrt,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_DEEPEST = 10
"""Names and operators that are followed one behind the other."""
_REDUCED = frozenset({"sum", "max", "min"})
NOT_ZERO = "not zero"
UNDEFINED = "undefined"
_LOWEST, _HIGHEST = '-float("inf")', 'float("inf")'
NEUTRAL = {"sum": "0.0", "max": _LOWEST, "argmax": _LOWEST, "min": _HIGHEST, "argmin": _HIGHEST}
"""What masked lanes must hold so that they change nothing, by the reduction."""
Content = float | str
"""A number, NOT_ZERO, or UNDEFINED."""


@dataclass(frozen=True)
class Lanes:
    """A block some lanes of which were not loaded."""

    load: KernelAccess
    hold: Content
    """What is in those lanes."""


def lanes(value: ast.expr, kernel: SourceKernel) -> Lanes | None:
    """The lanes of a value that a mask left out; None where there are none, or they are unknown."""
    return _lanes(value, kernel, depth=_DEEPEST)


def is_masked_along(load: KernelAccess, axis: ast.expr | None, kernel: SourceKernel) -> bool:
    """Whether the mask leaves out lanes of the axis that a reduction sums up; no axis: of any."""
    if load.mask is None or not kernel.is_block(load.mask):
        return False
    places = list(_axes_of_ranges(load.mask, kernel))
    rank = max((rank for _, rank in _axes_of_ranges(load.address, kernel)), default=1)
    if axis is None:
        return True
    number = literal_integer(axis)
    if number is None:
        return False
    if not places:
        return rank == 1
    return any(place == (number % own_rank) for place, own_rank in places)


def is_never_negative(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether a value is an absolute one, a square, a power of e or the like."""
    value = kernel.bare(value)
    if kernel.squared(value) is not None:
        return True
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Div(), right=right):
            return is_never_negative(left, kernel) and is_never_negative(right, kernel)
        case ast.Compare():
            return True
    called = kernel.operation(value)
    if called and called.name == "maximum":
        floors = [kernel.number(operand) for operand in called.operands]
        return any(floor is not None and floor >= 0 for floor in floors)
    number = kernel.number(value)
    return bool(called and called.name in _FUNCTIONS) or (number is not None and number >= 0)


def _lanes(value: ast.expr, kernel: SourceKernel, *, depth: int) -> Lanes | None:
    value = _follow(value, kernel)
    if depth <= 0:
        return None
    match value:
        case ast.Name():
            return _lanes_of_accumulator(value, kernel, depth=depth - 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if held := _lanes(operand, kernel, depth=depth - 1):
            return replace(held, hold=-held.hold) if isinstance(held.hold, float) else held
        case ast.BinOp():
            return _combine(value, kernel, depth=depth - 1)
    load = load_of(value, kernel)
    if load is not None:
        number = kernel.number(load.other) if load.other else UNDEFINED
        is_masked = load.mask is not None and kernel.is_block(load.mask)
        return Lanes(load, number) if is_masked and number is not None else None
    called = kernel.operation(value)
    if called and called.name in _FUNCTIONS and called.operands:
        held = _lanes(called.operands[0], kernel, depth=depth - 1)
        return _apply(called, held) if held else None
    return None


def _follow(value: ast.expr, kernel: SourceKernel) -> ast.expr:
    """Names and casts are followed; what changes the shape is not."""
    while True:
        value = kernel.resolved(value)
        called = kernel.operation(value)
        if called is None or called.name not in ("to", "cast") or not called.operands:
            return value
        value = called.operands[0]


def load_of(value: ast.expr, kernel: SourceKernel) -> KernelAccess | None:
    """The tl.load that a value is, nothing followed."""
    return next((load for load in kernel.loads if load.call is value), None)


def _apply(called: Operation, held: Lanes) -> Lanes | None:
    if held.hold == UNDEFINED:
        return held
    if isinstance(held.hold, str):
        # Of what is not zero, only a power is known to be something.
        return held if called.name in ("exp", "exp2", "abs", "sigmoid") else None
    try:
        return replace(held, hold=float(_FUNCTIONS[called.name](held.hold)))
    except (OverflowError, ValueError):
        return None


def _combine(value: ast.BinOp, kernel: SourceKernel, *, depth: int) -> Lanes | None:
    sides = (value.left, value.right)
    both = [_lanes(side, kernel, depth=depth) for side in sides]
    masked = [held for held in both if held]
    undefined = next((held for held in masked if held.hold == UNDEFINED), None)
    if undefined or not masked or (both[0] is None and isinstance(value.op, ast.Div | ast.Pow)):
        return undefined
    load = masked[0].load
    contents = [
        held.hold if held else _content(side, load, kernel, depth=depth)
        for held, side in zip(both, sides, strict=True)
    ]
    hold = _compute(value.op, *contents)
    return None if hold is None else Lanes(load, hold)


def _content(value: ast.expr, load: KernelAccess, kernel: SourceKernel, *, depth: int) -> Content | None:
    """What a value that is the same in all lanes holds; None where it may be zero or not."""
    number = kernel.number(value)
    return NOT_ZERO if number is None and _is_total(value, load, kernel, depth=depth) else number


def _compute(op: ast.operator, one: Content | None, other: Content | None) -> Content | None:
    """What an operator makes of two contents; None where that depends on the data."""
    if isinstance(one, float) and isinstance(other, float):
        try:
            return _ARITHMETIC[type(op)](one, other)
        except (KeyError, ArithmeticError, ValueError):
            return None
    match op:
        case ast.Add() | ast.Sub() if _is_infinite(one):
            return one
        case ast.Add() | ast.Sub() if isinstance(other, float) and _is_infinite(other):
            return other if isinstance(op, ast.Add) else -other
        case ast.Add() | ast.Sub():
            return NOT_ZERO if {one, other} == {0.0, NOT_ZERO} else None
        case ast.Mult() | ast.Div() if one == 0.0 or (other == 0.0 and isinstance(op, ast.Mult)):
            return 0.0
        case ast.Mult() | ast.Div() if None not in (one, other) and not _is_infinite(one):
            return NOT_ZERO
        case ast.Pow() if one == NOT_ZERO and other is not None:
            return NOT_ZERO
    return None


def _is_infinite(content: Content | None) -> bool:
    return isinstance(content, float) and math.isinf(content)


def _is_total(value: ast.expr, load: KernelAccess, kernel: SourceKernel, *, depth: int) -> bool:
    """Whether it is the sum or the maximum of all that a block holds, or a multiple: not zero but by chance.

    What is summed up along one axis of several is another block, unless it is the load's own rows.
    """
    value = kernel.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Div() | ast.Mult()):
            return _is_total(left, load, kernel, depth=depth)
    called = kernel.operation(value)
    if called is None or called.name not in _REDUCED or not called.operands:
        return False
    held = _lanes(called.operands[0], kernel, depth=depth)
    if held and held.load is load:
        return True
    return not any(_adds_axis(node) for node in kernel.origins(value))


def _lanes_of_accumulator(name: ast.Name, kernel: SourceKernel, *, depth: int) -> Lanes | None:
    """Of a name that starts at zero and that a loop adds blocks to."""
    parts: list[Lanes] = []
    for held in kernel.definitions(name):
        match held:
            case ast.BinOp(left=ast.Name(id=own), op=ast.Add(), right=step) if own == name.id:
                if (part := _lanes(step, kernel, depth=depth)) and part.hold in (NOT_ZERO, UNDEFINED):
                    parts.append(part)
            case ast.expr() if kernel.is_a(kernel.bare(held), "zeros", "full", "zeros_like") or (
                kernel.number(held) is not None
            ):
                continue
            case _:
                return None
    return parts[0] if parts else None


def _axes_of_ranges(value: ast.expr, kernel: SourceKernel) -> Iterator[tuple[int, int]]:
    """For each `[:, None]` of what holds a range, the axis that it is on and how many axes there are."""
    for node in kernel.origins(value):
        match node:
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)) if _adds_axis(node):
                if kernel.is_block(inner):
                    places = (place for place, part in enumerate(parts) if isinstance(part, ast.Slice))
                    yield from ((place, len(parts)) for place in places)


def _adds_axis(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            return any(map(is_new_axis, parts))
    return False


def is_masked_later(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether tl.where chooses from a value, or a comparison is multiplied with it."""
    return value in kernel.selected or any(
        kernel.bare(factor) is value and _is_mask(other, kernel)
        for node in kernel.expressions
        for factor, other in factors(node)
    )


def _is_mask(value: ast.expr, kernel: SourceKernel) -> bool:
    match kernel.bare(value):
        case ast.Compare():
            return True
        case ast.BinOp(left=left, op=ast.BitAnd()):
            return _is_mask(left, kernel)
    return False
