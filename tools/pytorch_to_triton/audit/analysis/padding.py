"""Lanes of a block beyond the end of the data, which a mask leaves out, and sums that count them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytorch_to_triton.audit.analysis.addresses import MaskBound, addends, bounds, range_length
from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.masked_lanes import is_masked_along, load_of
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel


@dataclass(frozen=True)
class Padding:
    """`lanes < end` in the mask of a load, where the lanes come from tl.arange(0, width)."""

    width: str
    """A tl.constexpr parameter."""
    end: str


@dataclass(frozen=True, eq=False)
class PaddedMean:
    """A tl.sum of masked data that is divided by the width of the block."""

    quotient: ast.expr
    padding: Padding


def padding_along(load: KernelAccess, reduction: Operation, kernel: SourceKernel) -> Padding | None:
    """What the mask of a load certainly leaves out of what a reduction takes in."""
    for bound in bounds(load.mask, kernel):
        padding = _padding(bound, kernel)
        along = replace(load, mask=bound.comparison)
        if padding and is_masked_along(along, reduction.option(1, "axis"), kernel):
            return padding
    return None


def padded_means(kernel: SourceKernel) -> Iterator[PaddedMean]:
    """Each sum of a masked load, or of its products, that is divided by the width of the block."""
    known = values(kernel)
    for node in known.expressions:
        total, divisor = _mean(node, known) or (node, None)
        reduction = known.operation(known.bare(total))
        if divisor is None or reduction is None or reduction.name != "sum" or not reduction.operands:
            continue
        loads = [load_of(factor, kernel) for factor in _factors(reduction.operands[0], known)]
        paddings = [padding_along(load, reduction, kernel) for load in loads if load]
        padding = next(filter(None, paddings), None)
        if padding and padding.width == ast.unparse(known.bare(divisor)):
            yield PaddedMean(node, padding)


def _padding(bound: MaskBound, kernel: SourceKernel) -> Padding | None:
    """What a bound leaves out of a block that is longer than the data, by all that the file shows."""
    lengths = {length for part in addends(bound.offsets, kernel) if (length := range_length(part, kernel))}
    width, end = next(iter(lengths), ""), ast.unparse(values(kernel).bare(bound.size))
    if bound.inclusive or len(lengths) != 1 or width not in kernel.constexprs or width == end:
        return None
    given = [launch.given(kernel) for launch in kernel.launches]
    pairs = [(passed.get(width), passed.get(end)) for passed in given]
    alike = any(one and other and ast.dump(one) == ast.dump(other) for one, other in pairs)
    return None if alike else Padding(width, ast.unparse(bound.size))


def _mean(node: ast.expr, known: KernelValues) -> tuple[ast.expr, ast.expr] | None:
    """The sum and the divisor of sum / n and sum * (1 / n)."""
    if quotient := known.quotient(node):
        return quotient
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for total, factor in ((left, right), (right, left)):
                inverse = known.quotient(known.bare(factor))
                if inverse and known.number(inverse[0]) == 1:
                    return total, inverse[1]
    return None


def _factors(value: ast.expr, known: KernelValues) -> list[ast.expr]:
    """x and y of x * y; of a masked load they are zero where it is."""
    value = known.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(left, known), *_factors(right, known)]
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(left, known)
    return [value]
