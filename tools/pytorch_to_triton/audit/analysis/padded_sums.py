"""Sums and means that count the lanes beyond the end of the data."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues
from pytorch_to_triton.audit.analysis.call_arguments import argument, whole_number
from pytorch_to_triton.audit.analysis.padding import Padding, is_padded_along, masked_load


@dataclass(frozen=True, eq=False)
class PaddedSum:
    """A tl.sum of what is certainly not zero in padded lanes."""

    call: ast.Call
    term: ast.expr
    """What is summed up."""
    padding: Padding


@dataclass(frozen=True, eq=False)
class PaddedMean:
    """A tl.sum of masked data that is divided by the width of the block."""

    quotient: ast.expr
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


def padded_means(found: KernelValues) -> Iterator[PaddedMean]:
    """Each sum of a masked load, or of its products, that is divided by the width of the block."""
    for node in found.expressions:
        divided = _mean(found, node)
        padding = _padding(found, divided[0]) if divided else None
        if divided and padding and found.same(padding.width, divided[1]):
            yield PaddedMean(node, padding)


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


def _is_reduced(found: KernelValues, value: ast.expr, *, is_expanded: bool = False) -> bool:
    """Whether the value is a tl.sum or tl.max, or one divided by a number, that is the same for all lanes."""
    bare = found.bare(value)
    is_expanded |= found.resolved(value) is not bare
    if quotient := found.quotient(bare):
        return _is_reduced(found, quotient[0], is_expanded=is_expanded)
    reduction = found.operation(bare)
    if reduction is None or reduction.name not in ("sum", "max"):
        return False
    # What is left of a matrix is a block, whose lanes differ.
    axis = whole_number(reduction.option(1, "axis"))
    return is_expanded or not axis or reduction.option(2, "keep_dims") is not None


def _fills_with_zero(found: KernelValues, load: ast.Call) -> bool:
    other = argument(load, 2, "other")
    return other is None or found.number(other) == 0


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
