"""Sums that count the lanes beyond the end of the data."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues
from pytorch_to_triton.audit.analysis.padding import Padding, is_padded_along, masked_load
from pytorch_to_triton.audit.call_arguments import argument


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
