"""Lanes of a block that lie beyond the end of the data, and that a mask leaves out."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.call_arguments import argument, whole_number


@dataclass(frozen=True)
class Padding:
    """`lanes < end` in the mask of a load, where the lanes come from tl.arange(0, width)."""

    width: ast.expr
    end: ast.expr
    axis: int | None
    """Of the loaded block; None where it is not certain."""
    rank: int
    """How many axes the mask has."""


def masked_load(values: KernelValues, value: ast.expr) -> ast.Call | None:
    """The load that a value comes from unchanged, where it has a mask."""
    bare = values.bare(value)
    found = values.operation(bare)
    if found and found.name == "load" and isinstance(bare, ast.Call) and argument(bare, 1, "mask"):
        return bare
    return None


def paddings(values: KernelValues, load: ast.Call) -> Iterator[Padding]:
    """What the mask of a load leaves out beyond the end of the data."""
    mask = argument(load, 1, "mask")
    for part in _conjuncts(values, mask) if mask else ():
        match values.bare(part):
            case ast.Compare(left=lanes, ops=[ast.Lt()], comparators=[end]):
                pass
            case ast.Compare(left=end, ops=[ast.Gt()], comparators=[lanes]):
                pass
            case _:
                continue
        width = _width(values, lanes)
        if width is not None and not values.same(width, end) and not _launched_alike(values, width, end):
            yield Padding(width, end, *_axis_and_rank(values, part))


def is_padded_along(values: KernelValues, load: ast.Call, reduction: Operation) -> Padding | None:
    """The padding of a load that certainly lies along the axis of a reduction."""
    spelled = reduction.option(1, "axis")
    all_axes = spelled is None or (isinstance(spelled, ast.Constant) and spelled.value is None)
    axis = whole_number(spelled)
    for padding in paddings(values, load):
        if all_axes or (axis is not None and padding.axis == axis % padding.rank):
            return padding
    return None


def _conjuncts(values: KernelValues, mask: ast.expr) -> Iterator[ast.expr]:
    """`a`, `b` and `c` of `a & (b & c)`; the new axes of each are kept."""
    resolved = values.resolved(mask)
    match resolved:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from _conjuncts(values, left)
            yield from _conjuncts(values, right)
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _conjuncts(values, part)
        case _:
            yield resolved


def _width(values: KernelValues, lanes: ast.expr) -> ast.expr | None:
    """BLOCK where the lanes are tl.arange(0, BLOCK), or that plus an offset."""
    arange = [
        one
        for one in values.origins(lanes)
        if (found := values.operation(one)) and found.name == "arange" and len(found.operands) == 2
    ]
    if len(arange) != 1 or not isinstance(arange[0], ast.Call):
        return None
    start, width = arange[0].args
    is_name = isinstance(width, ast.Name) and width.id in values.kernel.constexprs
    return width if is_name and values.number(start) == 0 else None


def _axis_and_rank(values: KernelValues, compare: ast.expr) -> tuple[int | None, int]:
    """0 and 2 for lanes[:, None] < end, 1 and 2 for lanes[None, :], 0 and 1 for lanes without new axes."""
    indices = [
        node.slice.elts
        for node in values.origins(compare)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    ]
    axes = {place for index in indices for place, part in enumerate(index) if isinstance(part, ast.Slice)}
    return min(axes, default=0) if len(axes) < 2 else None, max(map(len, indices), default=1)


def _launched_alike(values: KernelValues, width: ast.expr, end: ast.expr) -> bool:
    """Whether a launch in the file passes the same for the width as for the end."""
    match width, end:
        case ast.Name(id=one), ast.Name(id=other):
            pairs = [(given.get(one), given.get(other)) for given in _given(values)]
            return any(a is not None and b is not None and ast.dump(a) == ast.dump(b) for a, b in pairs)
    return False


def _given(values: KernelValues) -> list[dict[str, ast.expr]]:
    return [{**launch.given(values.kernel)} for launch in values.kernel.launches]
