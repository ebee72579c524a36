"""Sizes as sympy expressions over the dims: parsed from Python, compared exactly, written back as Python."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from typing import Any, TypeAlias

import sympy
from sympy.core.symbol import Str

from pytorch_to_triton.inputs.expression import names_in, value_of

Size: TypeAlias = Any
"""A sympy.Expr; sympy has no types that a checker could read."""
ONE: Size = sympy.Integer(1)
ZERO: Size = sympy.Integer(0)

CALLS: Mapping[str, type[sympy.Function]] = {"max": sympy.Max, "min": sympy.Min}
WHOLE = frozenset({"int", "round", "math.ceil", "math.floor"})
"""Python's functions that make whole numbers of floats."""


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """`a // b` of whole numbers; what divides without a remainder is taken out of it."""

    @classmethod
    @cache
    def eval(cls, a: Size, b: Size) -> Size | None:
        if b == 1:
            return a
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b))
        if isinstance(b, sympy.Add) and (whole := _exact(a, b)) is not None:
            return whole
        terms = sympy.Add.make_args(sympy.expand(a))
        if (shared := _shared_factor(terms, b)) > 1:
            return cls(sympy.Add(*(_cut(t, shared) for t in terms)), b / shared)
        whole = [t for t in terms if _divides(b, t)]
        if not whole:
            return None
        rest = sympy.Add(*(t for t in terms if t not in whole))
        return sympy.Add(*(t / b for t in whole)) + (cls(rest, b) if rest != 0 else 0)


class Mod(sympy.Function):  # type: ignore[misc]
    """`a % b` of whole numbers."""

    @classmethod
    def eval(cls, a: Size, b: Size) -> Size | None:
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b))
        return ZERO if _divides(b, a) else None


def rounds_below_zero(e: Size) -> bool:
    """Whether it divides what is below zero: Python rounds down there, Triton towards zero."""
    dividends = (f.args[0] for f in e.atoms(FloorDiv, Mod))
    return any(all(t.as_coeff_Mul()[0] < 0 for t in sympy.Add.make_args(d)) for d in dividends)


class ComputedSize(sympy.Function):  # type: ignore[misc]
    """A whole number that `run` computes from sizes by way of floats: `int(0.3 * float(H))`.

    Its arguments are the Python text, over `names_in` it in order, and what stands for each of them.
    """

    @classmethod
    def of(cls, text: str) -> Size:
        return cls(Str(text), *map(symbol, sorted(names_in(text))))

    @classmethod
    def eval(cls, text: Str, *given: Size) -> Size | None:
        if all(n.is_Integer for n in given):
            dims = dict(zip(sorted(names_in(text.name)), map(int, given), strict=True))
            return sympy.Integer(int(value_of(text.name, dims)))
        return None

    def _eval_is_integer(self) -> bool:
        return True

    def _eval_is_nonnegative(self) -> bool:
        return True

    @property
    def python(self) -> str:
        """As source over what stands for the names."""
        text, *given = self.args
        written = dict(zip(sorted(names_in(text.name)), given, strict=True))

        def put(name: re.Match[str]) -> str:
            return f"({_written(written[name[0]])})" if name[0] in written else name[0]

        return re.sub(r"\b[^\W\d]\w*\b", put, str(text.name))


class ExactQuotient(sympy.Function):  # type: ignore[misc]
    """`a // b` where b is known to divide a."""

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Size, b: Size) -> Size | None:
        return None if a.is_Symbol and a not in b.free_symbols else a / b


def in_quotients(expression: Size, divisors: Mapping[str, Size | int]) -> Size:
    """The size over quotients of dims with a known divisor: N as 4 * (N // 4), D as G * (D // G)."""

    def shared(name: str) -> Size:
        divisor = size(divisors[name])
        others = {n: d for n, d in divisors.items() if n != name}
        return in_quotients(divisor, others) * ExactQuotient(symbol(name), divisor)

    return expression.xreplace({symbol(n): shared(n) for n in divisors})


def in_dims(expression: Size) -> Size:
    """The size over the dims again: 4 * (N // 4) as N, N // 4 as a quotient without remainder."""
    return expression.replace(lambda e: isinstance(e, ExactQuotient), lambda e: e.args[0] / e.args[1])


def atoms(expression: Size) -> frozenset[Size]:
    """The dims, and quotients of dims, that it is made of."""
    quotients = expression.atoms(ExactQuotient)
    rest = expression.xreplace(dict.fromkeys(quotients, ONE))
    return frozenset(quotients) | frozenset(rest.free_symbols)


def _shared_factor(terms: Iterable[Size], b: Size) -> int:
    """The number that goes into b and into all terms but a number: (2*N + 1) // 256 is N // 128."""
    others = [b, *(t for t in terms if not t.is_Integer)]
    if any(t.as_numer_denom()[1] != 1 for t in others):
        return 1
    return math.gcd(*(int(t.as_coeff_Mul()[0]) for t in others))


def _cut(term: Size, by: int) -> Size:
    """The term without the factor; a number is rounded down."""
    return sympy.Integer(int(term) // by) if term.is_Integer else term / by


def _divides(b: Size, term: Size) -> bool:
    quotient = term / b
    return bool(quotient.is_integer) and quotient.as_numer_denom()[1] == 1


def _exact(a: Size, b: Size) -> Size | None:
    """The quotient by a sum, such as `H*W - 2*W` by `H - 2`, where it is a sum of products again."""
    quotient, denominator = sympy.fraction(sympy.cancel(a / b))
    return quotient if denominator == 1 else None


def symbol(name: str) -> sympy.Symbol:
    """A dim."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


@cache
def size(text: str | int | Size) -> Size:
    """A size as a person writes it: `2*H`, `(N + 1)//2`, `max(N, 1)`. Raises ValueError for other Python."""
    if isinstance(text, sympy.Expr):
        return text
    return sympy.Integer(text) if isinstance(text, int) else _parsed(ast.parse(text, mode="eval").body)


def _parsed(node: ast.expr) -> Size:
    match node:
        case ast.Constant(value=int(value)):
            return sympy.Integer(value)
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_parsed(operand)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _parsed(left), _parsed(right)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return FloorDiv(a, b)
                case ast.Mod():
                    return Mod(a, b)
                case ast.Pow() if b.is_Integer:
                    return a**b
        case ast.Call(
            func=ast.Name(id="int"),
            args=[ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=float(whole)))],
        ) if whole.is_integer() and whole > 0:
            return FloorDiv(_parsed(left), sympy.Integer(int(whole)))
        case ast.Call(func=ast.Name(id=name), args=args) if name in CALLS:
            return CALLS[name](*map(_parsed, args))
        case ast.Call(func=function) if ast.unparse(function) in WHOLE:
            return ComputedSize.of(ast.unparse(node))
    raise ValueError(f"{ast.unparse(node)} is no size: sums, products, //, %, max and min of dims are.")


def product(sizes: Iterable[Size]) -> Size:
    """The product of all; 1 for none."""
    return reduce(lambda a, b: a * b, sizes, ONE)


def smaller(a: Size, b: Size | int) -> Size:
    """The smaller of two sizes."""
    return sympy.Min(a, b)


def larger(a: Size, b: Size | int) -> Size:
    """The larger of two sizes."""
    return sympy.Max(a, b)


def ceiling(a: Size, b: Size | int) -> Size:
    """How many pieces of b elements hold a."""
    return FloorDiv(a + b - 1, sympy.sympify(b))


def value(expression: Size, dims: Mapping[str, int]) -> int:
    """The size as a number."""
    found = in_dims(expression).subs({symbol(n): v for n, v in dims.items()})
    return int(found.doit())


@cache
def text(expression: Size) -> str:
    """The size as Python source, without outer parentheses."""
    return ast.unparse(ast.parse(_written(in_dims(expression)), mode="eval"))


def _written(e: Size) -> str:
    if e.is_Integer or e.is_Symbol:
        return str(e)
    if isinstance(e, sympy.Add):
        first, *rest = _ordered(e)
        signed = (f"- ({_written(-a)})" if _negative(a) else f"+ ({_written(a)})" for a in rest)
        return " ".join([f"({_written(first)})", *signed])
    if isinstance(e, ComputedSize):
        return e.python
    dividend, divisor = e.as_numer_denom()
    if divisor != 1:
        return f"({_written(dividend)}) // ({_written(divisor)})"
    parts = [f"({_written(a)})" for a in e.args]
    if isinstance(e, sympy.Mul):
        return " * ".join(parts)
    if isinstance(e, sympy.Pow):
        return " * ".join([f"({_written(e.args[0])})"] * int(e.args[1]))
    if isinstance(e, FloorDiv):
        return " // ".join(parts)
    if isinstance(e, Mod):
        return " % ".join(parts)
    if isinstance(e, sympy.Max | sympy.Min):
        return f"{'max' if isinstance(e, sympy.Max) else 'min'}({', '.join(map(_written, e.args))})"
    raise AssertionError(f"{e} is no size")


def _ordered(e: Size) -> tuple[Size, ...]:
    """Terms as a person orders them: what is added first, names before numbers."""
    return tuple(sorted(e.args, key=lambda a: (_negative(a), a.is_number, str(a))))


def _negative(e: Size) -> bool:
    return bool(e.could_extract_minus_sign())


def names(expression: Size) -> frozenset[str]:
    """The dims that it mentions."""
    return frozenset(str(s) for s in expression.free_symbols)


@cache
def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are the same for all dims."""
    return bool(a == b) or bool(sympy.expand(a - b) == 0)


@cache
def divides(part: Size, whole: Size) -> bool:
    """Whether the one goes into the other without a remainder, for all dims."""
    return equal(FloorDiv(whole, part) * part, whole)
