"""Lanes of a block beyond the end of the data, which a mask leaves out, and sums that count them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import and_operands
from pytorch_to_triton.audit.analysis.arithmetic import KernelValues
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.call_arguments import argument, literal_integer


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
    for part in and_operands(mask, values.resolved) if mask else ():
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
    axis = literal_integer(spelled)
    for padding in paddings(values, load):
        if all_axes or (axis is not None and padding.axis == axis % padding.rank):
            return padding
    return None


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
            given = [launch.given(values.kernel) for launch in values.kernel.launches]
            pairs = [(passed.get(one), passed.get(other)) for passed in given]
            return any(a is not None and b is not None and ast.dump(a) == ast.dump(b) for a, b in pairs)
    return False


@dataclass(frozen=True, eq=False)
class PaddedMean:
    """A tl.sum of masked data that is divided by the width of the block."""

    quotient: ast.expr
    padding: Padding


def padded_means(found: KernelValues) -> Iterator[PaddedMean]:
    """Each sum of a masked load, or of its products, that is divided by the width of the block."""
    for node in found.expressions:
        divided = _mean(found, node)
        padding = _padding(found, divided[0]) if divided else None
        if divided and padding and found.same(padding.width, divided[1]):
            yield PaddedMean(node, padding)


def _mean(found: KernelValues, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The sum and the divisor of sum / n and sum * (1 / n)."""
    if quotient := found.quotient(node):
        return quotient
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for total, factor in ((left, right), (right, left)):
                inverse = found.quotient(found.bare(factor))
                if inverse and found.number(inverse[0]) == 1:
                    return total, inverse[1]
    return None


def _padding(found: KernelValues, total: ast.expr) -> Padding | None:
    """The padding of what tl.sum adds up, where it lies along the axis of the sum."""
    bare = found.bare(total)
    reduction = found.operation(bare)
    if reduction is None or reduction.name != "sum" or not reduction.operands:
        return None
    loads = [masked_load(found, factor) for factor in _factors(found, reduction.operands[0])]
    found_in = [is_padded_along(found, load, reduction) for load in loads if load]
    return next((padding for padding in found_in if padding), None)


def _factors(found: KernelValues, value: ast.expr) -> list[ast.expr]:
    """x and y of x * y; of a masked load they are zero where it is."""
    value = found.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(found, left), *_factors(found, right)]
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(found, left)
    return [value]
