"""Questions about addresses and masks."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.arguments import argument, whole_number
from pytorch_to_triton.audit.arithmetic import values
from pytorch_to_triton.audit.flow import Stop, nowhere
from pytorch_to_triton.audit.source import Access, Kernel

_TL = "triton.language."


@dataclass(frozen=True, eq=False)
class Bound:
    """`offsets < size` or `offsets <= size`, a part of a mask."""

    comparison: ast.Compare
    offsets: ast.expr
    size: ast.expr
    inclusive: bool


def bounds(mask: ast.expr | None, kernel: Kernel) -> Iterator[Bound]:
    """The upper bounds that a mask sets; `n > offsets` is one, too."""
    for condition in conjuncts(mask, kernel) if mask else ():
        if not isinstance(condition, ast.Compare):
            continue
        sides = [condition.left, *condition.comparators]
        for left, op, right in zip(sides, condition.ops, sides[1:], strict=False):
            match op:
                case ast.Lt() | ast.LtE():
                    yield Bound(condition, left, right, inclusive=isinstance(op, ast.LtE))
                case ast.Gt() | ast.GtE():
                    yield Bound(condition, right, left, inclusive=isinstance(op, ast.GtE))


def conjuncts(mask: ast.expr, kernel: Kernel) -> Iterator[ast.expr]:
    """The conditions that must all hold where the mask does."""
    plain = values(kernel).bare(mask)
    match plain:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from conjuncts(left, kernel)
            yield from conjuncts(right, kernel)
        case ast.BoolOp(op=ast.And(), values=conditions):
            for condition in conditions:
                yield from conjuncts(condition, kernel)
        case _:
            yield plain


def addends(value: ast.expr, kernel: Kernel) -> list[ast.expr]:
    """The parts that a sum adds up, each without casts and new axes; names are followed."""
    plain = values(kernel).bare(value)
    match plain:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*addends(left, kernel), *addends(right, kernel)]
    return [plain]


def block_start(part: ast.expr, kernel: Kernel) -> tuple[int, str] | None:
    """The axis and the block size of `tl.program_id(axis) * BLOCK`."""
    known = values(kernel)
    match known.bare(part):
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sides = (known.bare(left), known.bare(right))
            for one, other in (sides, sides[::-1]):
                axis = program_axis(one, kernel)
                if axis is not None and isinstance(other, ast.Name | ast.Constant):
                    return axis, ast.unparse(other)
    return None


def program_axis(part: ast.expr, kernel: Kernel) -> int | None:
    """The axis of `tl.program_id(axis)`, where the part is nothing else."""
    call = values(kernel).bare(part)
    if isinstance(call, ast.Call) and kernel.scope.path(call.func) == f"{_TL}program_id":
        return whole_number(argument(call, 0, "axis"))
    return None


def range_length(part: ast.expr, kernel: Kernel) -> str | None:
    """`BLOCK` of `tl.arange(0, BLOCK)`, where the part is nothing else."""
    call = values(kernel).bare(part)
    if isinstance(call, ast.Call) and kernel.scope.path(call.func) == f"{_TL}arange":
        end = argument(call, 1, "end")
        if end is not None and whole_number(argument(call, 0, "start")) == 0:
            return ast.unparse(values(kernel).bare(end))
    return None


def ranges(kernel: Kernel, *given: ast.expr | None, stop: Stop = nowhere) -> frozenset[str]:
    """The tl.arange calls that the values may be made from, as their arguments spell them."""
    known = [value for value in given if value is not None]
    calls = (call for path, call in kernel.flow.calls(*known, stop=stop) if path == f"{_TL}arange")
    return frozenset(
        ", ".join(ast.unparse(one) for one in (*call.args, *(keyword.value for keyword in call.keywords)))
        for call in calls
    )


def is_block(access: Access, kernel: Kernel) -> bool:
    """Whether the address is a whole block of them, made by a tl.arange of this function."""
    return bool(ranges(kernel, access.address, stop=lambda node: is_loaded(node, kernel)))


def is_loaded(node: ast.AST, kernel: Kernel) -> bool:
    """Whether it is a value from memory."""
    path = kernel.scope.path(node.func) or "" if isinstance(node, ast.Call) else ""
    return path == f"{_TL}load" or path.startswith(f"{_TL}atomic_")
