"""Offsets as sums of products, so that two of them can be subtracted."""

import ast
from collections import Counter
from collections.abc import Mapping

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.source import SourceKernel

Monomial = tuple[int, ...]
"""The keys of the factors, in order; () of the constant."""
Polynomial = Mapping[Monomial, int]
"""The products with their coefficients, none of them 0."""
_CLAMPS = ("maximum", "minimum")
_DEEPEST = 20
_MOST_TERMS = 64


def polynomial(value: ast.expr, kernel: SourceKernel, pointer: str | None = None) -> Polynomial | None:
    """The value as a sum of products, a pointer and clamps left out; None where it has too many."""
    return _polynomial(value, kernel, pointer, _DEEPEST)


def difference(one: Polynomial, other: Polynomial) -> Polynomial:
    """One less the other."""
    rest = Counter(one)
    rest.subtract(other)
    return _without_zeros(rest)


def _polynomial(
    value: ast.expr, kernel: SourceKernel, pointer: str | None, deepest: int
) -> Polynomial | None:
    known = values(kernel)
    value = known.bare(value)
    if (number := literal_integer(value)) is not None:
        return {(): number} if number else {}
    if isinstance(value, ast.Name) and value.id == pointer:
        return {}
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right) if deepest:
            one, other = (_polynomial(side, kernel, pointer, deepest - 1) for side in (left, right))
            return None if one is None or other is None else _combine(one, op, other)
    clamped = known.operation(value)
    if clamped and clamped.name in _CLAMPS and len(clamped.operands) == 2 and deepest:
        inner, limit = clamped.operands
        inner = limit if literal_integer(inner) is not None else inner
        return _polynomial(inner, kernel, pointer, deepest - 1)
    return {(known.key(value),): 1}


def _combine(one: Polynomial, op: ast.operator, other: Polynomial) -> Polynomial | None:
    if isinstance(op, ast.Sub):
        return difference(one, other)
    products: Counter[Monomial] = Counter()
    if isinstance(op, ast.Add):
        products.update(one)
        products.update(other)
    elif len(one) * len(other) > _MOST_TERMS:
        return None
    else:
        for first, many in one.items():
            for second, more in other.items():
                products[tuple(sorted(first + second))] += many * more
    return _without_zeros(products)


def _without_zeros(polynomial: Mapping[Monomial, int]) -> Polynomial:
    return {monomial: many for monomial, many in polynomial.items() if many}
