"""Questions about addresses and masks."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.call_arguments import argument, literal_integer, range_end
from pytorch_to_triton.audit.source import SourceKernel

_TL = "triton.language."


@dataclass(frozen=True, eq=False)
class MaskBound:
    """`offsets < size` or `offsets <= size`, a part of a mask."""

    comparison: ast.Compare
    offsets: ast.expr
    size: ast.expr
    inclusive: bool


def bounds(mask: ast.expr | None, kernel: SourceKernel) -> Iterator[MaskBound]:
    """The upper bounds that a mask sets; `n > offsets` is one, too."""
    for condition in conjuncts(mask, kernel) if mask else ():
        if not isinstance(condition, ast.Compare):
            continue
        sides = [condition.left, *condition.comparators]
        for left, op, right in zip(sides, condition.ops, sides[1:], strict=False):
            match op:
                case ast.Lt() | ast.LtE():
                    yield MaskBound(condition, left, right, inclusive=isinstance(op, ast.LtE))
                case ast.Gt() | ast.GtE():
                    yield MaskBound(condition, right, left, inclusive=isinstance(op, ast.GtE))


def conjuncts(mask: ast.expr, kernel: SourceKernel) -> Iterator[ast.expr]:
    """The conditions that must all hold where the mask does."""
    return and_operands(mask, values(kernel).bare)


def and_operands(mask: ast.expr, follow: Callable[[ast.expr], ast.expr]) -> Iterator[ast.expr]:
    """`a`, `b` and `c` of `a & (b & c)`, with `follow` applied to each part."""
    match plain := follow(mask):
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from and_operands(left, follow)
            yield from and_operands(right, follow)
        case ast.BoolOp(op=ast.And(), values=conditions):
            for condition in conditions:
                yield from and_operands(condition, follow)
        case _:
            yield plain


def addends(value: ast.expr, kernel: SourceKernel) -> list[ast.expr]:
    """The parts that a sum adds up, each without casts and new axes.

    Names are followed; what a loop adds to a pointer, as in `ptrs += BLOCK`, is left out.
    """
    plain = values(kernel).bare(value)
    match plain:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*addends(left, kernel), *addends(right, kernel)]
        case ast.Name() if (start := _start(plain, kernel)) is not None:
            return addends(start, kernel)
    return [plain]


def block_start(part: ast.expr, kernel: SourceKernel) -> tuple[int, str] | None:
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


def program_axis(part: ast.expr, kernel: SourceKernel) -> int | None:
    """The axis of `tl.program_id(axis)`, where the part is nothing else."""
    call = values(kernel).bare(part)
    if isinstance(call, ast.Call) and kernel.scope.path(call.func) == f"{_TL}program_id":
        return literal_integer(argument(call, 0, "axis"))
    return None


def range_length(part: ast.expr, kernel: SourceKernel) -> str | None:
    """`BLOCK` of `tl.arange(0, BLOCK)`, where the part is nothing else."""
    call = values(kernel).bare(part)
    end = range_end(call, kernel.scope)
    if isinstance(call, ast.Call) and end is not None and literal_integer(argument(call, 0, "start")) == 0:
        return ast.unparse(values(kernel).bare(end))
    return None


@dataclass(frozen=True)
class BlockWalk:
    """`tl.program_id(axis) * block + tl.arange(0, block)`, masked by a size."""

    axis: int
    block: str
    size: str
    """The parameter."""


def block_walks(kernel: SourceKernel) -> Iterator[BlockWalk]:
    """The sizes over which programs walk in blocks, as the masks of accesses show."""
    for access in kernel.accesses:
        for bound in bounds(access.mask, kernel):
            parts = addends(bound.offsets, kernel)
            starts = [start for part in parts if (start := block_start(part, kernel))]
            lengths = {length for part in parts if (length := range_length(part, kernel))}
            if len(parts) != 2 or len(starts) != 1 or lengths != {starts[0][1]}:
                continue
            axis, block = starts[0]
            if isinstance(bound.size, ast.Name) and block in kernel.constexprs:
                yield BlockWalk(axis, block, bound.size.id)


def is_block(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether the value may be made from a tl.arange of this function: a block rather than a scalar."""
    return any(path == f"{_TL}arange" for path, _ in kernel.flow.calls(value))


def may_be_block(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a block, or a function of the file's own may have made it one."""
    helpers = {one.node.name for one in kernel.file.kernels}
    return is_block(value, kernel) or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in helpers
        for node in kernel.flow.origins(value)
    )


def is_loaded(node: ast.AST, kernel: SourceKernel) -> bool:
    """Whether it is a value from memory."""
    path = kernel.scope.path(node.func) or "" if isinstance(node, ast.Call) else ""
    return path == f"{_TL}load" or path.startswith(f"{_TL}atomic_")


def _start(name: ast.Name, kernel: SourceKernel) -> ast.expr | None:
    """What a name holds before a loop adds to it; None where that is not all that happens to it."""
    held = values(kernel).definitions(name)
    starts = [definition for definition in held if not _adds_to(definition, name.id)]
    match starts:
        case [ast.expr() as start] if len(held) > 1:
            return start
    return None


def _adds_to(value: ast.AST, name: str) -> bool:
    match value:
        case ast.BinOp(left=ast.Name(id=own), op=ast.Add()):
            return own == name
    return False
