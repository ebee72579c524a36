"""Arithmetic on indices: what divides, what is left over, and what a range makes certain.

An index along an axis lies in [0, size). That alone takes apart and puts together what views do:
`(i*N + j)//N` is `i` and `(i*N + j) % N` is `j` where `j` runs over N, and `i//N*N + i%N` is `i`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, reduce

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Extent, Index, Map, Value, op


def extent(size: Size) -> Value:
    """A size as a value: a literal where it is a number."""
    return Const(int(size)) if size.is_Integer else Extent(size)


def size_of(v: Value) -> Size | None:
    """The size that the value is, where it is one."""
    match v:
        case Const(value=int(n)) if not isinstance(n, bool):
            return sizes.size(n)
        case Extent(size=s):
            return s
    return None


def times(v: Value, size: Size) -> Value:
    """An index times a size."""
    return simplified(Map("mul", (v, extent(size))))


def plus(a: Value, b: Value) -> Value:
    """The sum of two indices."""
    return simplified(Map("add", (a, b)))


def minus(a: Value, b: Value) -> Value:
    """The difference of two indices."""
    return simplified(Map("sub", (a, b)))


def quotient(v: Value, size: Size) -> Value:
    """How often a size goes into an index."""
    return simplified(Map("floordiv", (v, extent(size))))


def remainder(v: Value, size: Size) -> Value:
    """What is left of an index."""
    return simplified(Map("mod", (v, extent(size))))


def offset(index: Iterable[Value], shape: Iterable[Size]) -> Value:
    """Where an element lies, row-major, by Horner's rule; what a view took apart is put together again."""
    at: Value = Const(0)
    for x, size in zip(index, shape, strict=True):
        at = plus(times(at, size), x)
    return at


def every(conditions: Iterable[Value | None]) -> Value | None:
    """Whether all hold; None where there is none."""
    given = [c for c in conditions if c is not None]
    return reduce(lambda a, b: op("and", a, b), given) if given else None


def bound(v: Value) -> Size | None:
    """A size that the index, which is not negative, stays below; None where none is known."""
    match v:
        case Index(axis=axis):
            return axis.size
        case Const(value=int(n)) if n >= 0:
            return sizes.size(n + 1)
        case Map(fn="mod", args=(_, n)):
            return size_of(n)
        case Map(fn="triangle_row" | "triangle_column", args=(x, *_)) if (top := bound(x)) is not None:
            return sizes.size((math.isqrt(8 * int(top) - 7) + 1) // 2) if top.is_Integer else top
        case Map(fn="sub", args=(Const(value=int(n)), y)) if (top := bound(y)) is not None and below(
            top, sizes.size(n + 1)
        ):
            return sizes.size(n + 1)
        case Map(fn="floordiv", args=(x, n)) if (top := bound(x)) is not None and (
            by := size_of(n)
        ) is not None:
            return sizes.FloorDiv(top - 1, by) + 1 if not sizes.divides(by, top) else sizes.FloorDiv(top, by)
        case Map(fn="mul", args=(x, n)) if (top := bound(x)) is not None and (by := size_of(n)) is not None:
            return (top - 1) * by + 1
        case Map(fn="add", args=(x, y)) if (a := bound(x)) is not None and (b := bound(y)) is not None:
            if (parts := _digits(v)) is not None:
                return parts
            return a + b - 1
    return None


def _digits(v: Map) -> Size | None:
    """The bound of `i*N + j` where j runs below N: the bound of i, times N."""
    x, y = v.args
    match x:
        case Map(fn="mul", args=(i, n)):
            by, top, low = size_of(n), bound(i), bound(y)
            if by is not None and top is not None and low is not None and below(low, by):
                return top * by
    return None


def least(v: Value) -> Size | None:
    """A size that the index is not below; None where none is known."""
    if (own := size_of(v)) is not None:
        return own
    match v:
        case Map(fn="add", args=(x, y)) if (a := least(x)) is not None and (b := least(y)) is not None:
            return a + b
        case Map(fn="mul", args=(x, n)) if (a := least(x)) is not None and (by := size_of(n)) is not None:
            return a * by
    return None if bound(v) is None else sizes.size(0)


def is_less(a: Value, b: Value) -> bool | None:
    """Whether the index a is less than b at every position, or (False) at none; None where that differs."""
    low, high = least(a), least(b)
    tops = (own + 1 if (own := size_of(v)) is not None else bound(v) for v in (a, b))
    a_top, b_top = tops
    if a_top is not None and high is not None and below(a_top, high):
        return True
    if b_top is not None and low is not None and below(b_top, low + 1):
        return False
    return None


@cache
def below(a: Size, b: Size) -> bool:
    """Whether a is at most b for all dims (which are at least 1 wherever an index exists)."""
    difference = sizes.size(0) + (b - a)
    difference = difference.expand()
    if difference.is_nonnegative:
        return True
    if difference.is_number:
        return False
    shifted = difference.xreplace({s: s + 1 for s in sizes.atoms(difference)}).expand()
    return bool(shifted.is_nonnegative)


def simplified(v: Map) -> Value:
    """An index expression by the rules above; anything else as it is."""
    a, *rest = v.args
    if not rest:
        return v
    b = rest[0]
    match v.fn:
        case "add":
            return _sum(v, a, b)
        case "sub":
            return _difference(v, a, b)
        case "mul":
            return _product(v, a, b)
        case "floordiv":
            by = size_of(b)
            return v if by is None else _quotient(v, a, by)
        case "mod":
            by = size_of(b)
            return v if by is None else _remainder(v, a, by)
    return v


def _sum(v: Map, a: Value, b: Value) -> Value:
    x, y = size_of(a), size_of(b)
    if x is not None and y is not None:
        return extent(x + y)
    match a, b:
        # i//N*N + i%N
        case Map(fn="mul", args=(high, n)), Map(fn="mod", args=(i, m)) if _is_quotient(high, i, n, m):
            return i
        # h + i//N*N + i%N, as Horner's rule leaves it
        case Map(fn="add", args=(h, Map(fn="mul", args=(high, n)))), Map(fn="mod", args=(i, m)) if (
            _is_quotient(high, i, n, m)
        ):
            return plus(h, i)
        # (h + i//N)*N + i%N
        case Map(fn="mul", args=(Map(fn="add", args=(h, high)), n)), Map(fn="mod", args=(i, m)) if (
            _is_quotient(high, i, n, m) and (by := size_of(n)) is not None
        ):
            return plus(times(h, by), i)
        # (h + i//N%M)*N + i%N
        case Map(fn="mul", args=(Map(fn="add", args=(h, Map(fn="mod", args=(high, k)))), n)), Map(
            fn="mod", args=(i, m)
        ) if (
            _is_quotient(high, i, n, m) and (by := size_of(n)) is not None and (top := size_of(k)) is not None
        ):
            return plus(times(h, by), remainder(i, by * top))
        # i//N%M*N + i%N
        case Map(fn="mul", args=(Map(fn="mod", args=(high, k)), n)), Map(fn="mod", args=(i, m)) if (
            _is_quotient(high, i, n, m) and (by := size_of(n)) is not None and (top := size_of(k)) is not None
        ):
            return remainder(i, by * top)
        # i//N*N + (i%N - c)
        case Map(fn="mul", args=(high, n)), Map(
            fn="add" | "sub" as fn, args=(Map(fn="mod", args=(i, m)), Const() as c)
        ) if _is_quotient(high, i, n, m):
            return plus(i, c) if fn == "add" else minus(i, c)
        # h*(N*M) + i*M
        case Map(fn="mul", args=(h, n)), Map(fn="mul", args=(i, m)) if (
            (whole := size_of(n)) is not None and (by := size_of(m)) is not None and sizes.divides(by, whole)
        ):
            return times(plus(times(h, sizes.FloorDiv(whole, by)), i), by)
        # h*(N*M) + (i*M + j), by Horner's rule
        case Map(fn="mul", args=(h, n)), Map(fn="add", args=(Map(fn="mul", args=(i, m)), low)) if (
            (whole := size_of(n)) is not None and (by := size_of(m)) is not None and sizes.divides(by, whole)
        ):
            return plus(times(plus(times(h, sizes.FloorDiv(whole, by)), i), by), low)
        case Map(fn="add", args=(h, Const(value=int(p)))), Const(value=int(q)):
            return op("add", h, p + q)
        case Map(fn="sub", args=(h, Const(value=int(p)))), Const(value=int(q)):
            return op("add", h, q - p) if q >= p else op("sub", h, p - q)
        case Map(fn="sub", args=(h, n)), _ if y is not None and size_of(n) == y:
            return h
    return op("add", a, b, name=v.name)


def _difference(v: Map, a: Value, b: Value) -> Value:
    x, y = size_of(a), size_of(b)
    if x is not None and y is not None:
        return extent(x - y)
    match a:
        case Map(fn="add", args=(h, n)) if y is not None and (added := size_of(n)) is not None:
            if below(y, added):
                return plus(h, extent(added - y))
            if below(added, y):
                return minus(h, extent(y - added))
    return op("sub", a, b, name=v.name)


def _is_quotient(high: Value, i: Value, n: Value, m: Value) -> bool:
    """Whether `high` is `i // n`, and n is m."""
    by = size_of(n)
    return n == m and by is not None and high == quotient(i, by)


def _product(v: Map, a: Value, b: Value) -> Value:
    x, y = size_of(a), size_of(b)
    if x is not None and y is not None:
        return extent(x * y)
    if x is not None:
        return times(b, x)
    if y == 0:
        return Const(0)
    match a:
        case Map(fn="mul", args=(i, n)) if y is not None and (m := size_of(n)) is not None:
            return times(i, m * y)
    return op("mul", a, b, name=v.name)


def _quotient(v: Map, a: Value, by: Size) -> Value:
    if by == 1:
        return a
    own = size_of(a)
    if own is not None:
        return extent(sizes.FloorDiv(own, by))
    top = bound(a)
    if top is not None and below(top, by):
        return Const(0)
    match a:
        case Map(fn="mul", args=(i, n)) if (m := size_of(n)) is not None and sizes.divides(by, m):
            return times(i, sizes.FloorDiv(m, by))
        case Map(fn="floordiv", args=(i, n)) if (m := size_of(n)) is not None:
            return quotient(i, m * by)
        case Map(fn="add", args=(Map(fn="mul", args=(i, n)) as high, low)) if (m := size_of(n)) is not None:
            least = bound(low)
            if sizes.divides(by, m):
                return plus(quotient(high, by), quotient(low, by))
            if least is not None and below(least, m) and sizes.divides(m, by):
                return quotient(i, sizes.FloorDiv(by, m))
    return Map("floordiv", (a, extent(by)), v.name)


def _remainder(v: Map, a: Value, by: Size) -> Value:
    if by == 1:
        return Const(0)
    top = bound(a)
    if top is not None and below(top, by):
        return a
    match a:
        case Const(value=int(n)) if by.is_Integer:
            return Const(n % int(by))
        case Map(fn="mul", args=(i, n)) if (m := size_of(n)) is not None:
            if sizes.divides(by, m):
                return Const(0)
            if sizes.divides(m, by):
                return times(remainder(i, sizes.FloorDiv(by, m)), m)
        case Map(fn="mod", args=(i, n)) if (m := size_of(n)) is not None and sizes.divides(by, m):
            return remainder(i, by)
        case Map(fn="sub", args=(i, Const(value=int(n)))) if by.is_Integer:
            return remainder(plus(i, Const(-n % int(by))), by)
        case Map(fn="add", args=(Map(fn="mul", args=(i, n)), low)) if (m := size_of(n)) is not None:
            least = bound(low)
            if sizes.divides(by, m):
                return remainder(low, by)
            if least is not None and below(least, m) and sizes.divides(m, by):
                return plus(times(remainder(i, sizes.FloorDiv(by, m)), m), low)
    return Map("mod", (a, extent(by)), v.name)
