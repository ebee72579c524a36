"""Lanes of a block that lie beyond the end of the data, and that a mask leaves out."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.arguments import argument
from pytorch_to_triton.audit.arithmetic import Operation, Values


@dataclass(frozen=True)
class Padding:
    """`lanes < end` in the mask of a load, where the lanes come from tl.arange(0, width)."""

    width: ast.expr
    end: ast.expr
    axis: int | None
    """Of the loaded block; None where it is not certain."""


def masked_load(values: Values, value: ast.expr) -> ast.Call | None:
    """The load that a value comes from unchanged, where it has a mask."""
    bare = values.bare(value)
    found = values.operation(bare)
    if found and found.name == "load" and isinstance(bare, ast.Call) and argument(bare, 1, "mask"):
        return bare
    return None


def paddings(values: Values, load: ast.Call) -> Iterator[Padding]:
    """What the mask of a load leaves out beyond the end of the data."""
    mask = argument(load, 1, "mask")
    for part in _conjuncts(values, mask) if mask else ():
        match part:
            case ast.Compare(left=lanes, ops=[ast.Lt()], comparators=[end]):
                pass
            case ast.Compare(left=end, ops=[ast.Gt()], comparators=[lanes]):
                pass
            case _:
                continue
        width = _width(values, lanes)
        if width is not None and not values.same(width, end) and not _launched_alike(values, width, end):
            yield Padding(width, end, _axis(values, part))


def reduced_axis(reduction: Operation) -> int | None:
    """The axis of a tl.sum or the like, where it is a literal; None also for all axes."""
    axis = reduction.option(1, "axis")
    return axis.value if isinstance(axis, ast.Constant) and isinstance(axis.value, int) else None


def is_padded_along(values: Values, load: ast.Call, reduction: Operation) -> Padding | None:
    """The padding of a load that certainly lies along the axis of a reduction."""
    found = [*paddings(values, load)]
    axis, spelled = reduced_axis(reduction), reduction.option(1, "axis")
    if spelled is not None and axis is None and not _is_none(spelled):
        return None
    along = [one for one in found if spelled is None or _is_none(spelled) or one.axis == axis]
    return along[0] if along else None


def _conjuncts(values: Values, mask: ast.expr) -> Iterator[ast.expr]:
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


def _width(values: Values, lanes: ast.expr) -> ast.expr | None:
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


def _axis(values: Values, compare: ast.expr) -> int | None:
    """0 for lanes[:, None] < end, 1 for lanes[None, :] < end, 0 for lanes without new axes."""
    axes = {
        place
        for node in values.origins(compare)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        for place, part in enumerate(node.slice.elts)
        if isinstance(part, ast.Slice)
    }
    return min(axes, default=0) if len(axes) < 2 else None


def _launched_alike(values: Values, width: ast.expr, end: ast.expr) -> bool:
    """Whether a launch in the file passes the same for the width as for the end."""
    match width, end:
        case ast.Name(id=one), ast.Name(id=other):
            pairs = [(given.get(one), given.get(other)) for given in _given(values)]
            return any(a is not None and b is not None and ast.dump(a) == ast.dump(b) for a, b in pairs)
    return False


def _given(values: Values) -> list[dict[str, ast.expr]]:
    return [{**launch.given(values.kernel)} for launch in values.kernel.launches]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
