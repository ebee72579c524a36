"""Symbolic sizes and strides: products of dims, kept simple enough to print in a kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class SymbolicSize:
    """A product of an integer and of factors; a factor is a dim's name or a parenthesised expression."""

    coefficient: int = 1
    factors: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SymbolicSize:
        """`2*H` as coefficient 2 and factor H; anything that is no product becomes one factor."""
        return _parsed(ast.parse(text, mode="eval").body)

    def __mul__(self, other: SymbolicSize) -> SymbolicSize:
        coefficient = self.coefficient * other.coefficient
        factors = sorted(self.factors + other.factors) if coefficient else ()
        return SymbolicSize(coefficient, tuple(factors))

    def __str__(self) -> str:
        if self.coefficient == 1 and self.factors:
            return " * ".join(self.factors)
        return " * ".join((str(self.coefficient), *self.factors))

    @property
    def is_one(self) -> bool:
        return self.coefficient == 1 and not self.factors

    @property
    def is_zero(self) -> bool:
        return self.coefficient == 0


ONE = SymbolicSize()
ZERO = SymbolicSize(0)


def product(sizes: Iterable[SymbolicSize]) -> SymbolicSize:
    """The product of all sizes; 1 for none."""
    result = ONE
    for size in sizes:
        result *= size
    return result


def contiguous_strides(sizes: tuple[SymbolicSize, ...]) -> tuple[SymbolicSize, ...]:
    """Row-major strides in elements."""
    return tuple(product(sizes[i + 1 :]) for i in range(len(sizes)))


def _parsed(node: ast.expr) -> SymbolicSize:
    match node:
        case ast.Constant(value=int(value)):
            return SymbolicSize(value)
        case ast.Name(id=name):
            return SymbolicSize(1, (name,))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _parsed(left) * _parsed(right)
    return SymbolicSize(1, (f"({ast.unparse(node)})",))
