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
class PaddedSum:
    """A tl.sum of what is certainly not zero in padded lanes."""

    call: ast.Call
    term: ast.expr
    """What is summed up."""
    padding: Padding


def padded_sums(found: KernelValues) -> Iterator[PaddedSum]:
    """Each tl.sum of squared differences from a mean, or of exponentials, of a load that is padded."""
    for call in found.operations:
        if call.name != "sum" or not call.operands or call.call in found.selected:
            continue
        for term in found.terms(call.operands[0]):
            load = _counted(found, term) if isinstance(term, ast.expr) else None
            padding = is_padded_along(found, load, call) if load else None
            if padding and isinstance(term, ast.expr):
                yield PaddedSum(call.call, term, padding)


def _counted(found: KernelValues, term: ast.expr) -> ast.Call | None:
    """The masked load of which the term is not zero in the lanes that the mask leaves out."""
    if exponent := found.operand(term, "exp", "exp2"):
        load = masked_load(found, exponent) or _shifted(found, exponent)
        return load if load and _fills_with_zero(found, load) else None
    difference = found.squared(term) or found.operand(term, "abs")
    return _shifted(found, difference) if difference is not None else None


def _shifted(found: KernelValues, value: ast.expr) -> ast.Call | None:
    """The load of `load - m`, where m is what a reduction made, the same for all lanes."""
    match found.bare(value):
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return masked_load(found, left) if _is_reduced(found, right) else None
    return None


def _is_reduced(found: KernelValues, value: ast.expr) -> bool:
    """Whether the value is a tl.sum or tl.max, or such a one divided by a number."""
    value = found.bare(value)
    if quotient := found.quotient(value):
        return _is_reduced(found, quotient[0])
    return found.is_a(value, "sum", "max")


def _fills_with_zero(found: KernelValues, load: ast.Call) -> bool:
    other = argument(load, 2, "other")
    return other is None or found.number(other) == 0
