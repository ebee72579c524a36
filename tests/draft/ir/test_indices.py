"""What simplifies an index keeps what it is, at every position."""

import itertools
import random

import pytest

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import bound, extent, minus, plus, quotient, remainder, times
from pytorch_to_triton.draft.ir.sizes import Size, size
from pytorch_to_triton.draft.ir.values import Axis, Const, Extent, Index, Map, Value

M, N, K = (Axis(name, size(name.upper())) for name in "mnk")
DIMS = {"M": 3, "N": 4, "K": 2}
SIZES = [size(s) for s in ("N", "M", "K", "M*N", "N*K", "M*N*K", "2", "3", "N + 1")]
OPS = {"add": plus, "mul": times, "floordiv": quotient, "mod": remainder}


def at(v: Value, position: dict[Axis, int]) -> int:
    """The index by its definition."""
    match v:
        case Index(axis=axis):
            return position[axis]
        case Const(value=value):
            return int(value)
        case Extent(size=s):
            return sizes.value(s, DIMS)
        case Map(fn=fn, args=args):
            a, b = (at(x, position) for x in args)
            return {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // (b or 1), "mod": a % (b or 1)}[
                fn
            ]
    raise AssertionError(v)


def both_ways(choose: random.Random, depth: int) -> tuple[Value, Value]:
    """An index written down as it is, and simplified."""
    if depth == 0:
        leaf = choose.choice([Index(M), Index(N), Index(K), Const(choose.randrange(4))])
        return leaf, leaf
    fn = choose.choice(list(OPS))
    plain, simple = both_ways(choose, depth - 1)
    if fn == "add":
        other, simpler = both_ways(choose, choose.randrange(depth))
        return Map("add", (plain, other)), plus(simple, simpler)
    by: Size = choose.choice(SIZES)
    return Map(fn, (plain, extent(by))), OPS[fn](simple, by)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=pytest.mark.corpora if n else ()) for n in range(0, 300, 50)]
)
def test_a_simplified_index_is_the_same_everywhere_and_below_its_bound(first: int) -> None:
    for seed in range(first, first + 50):
        plain, simple = both_ways(random.Random(seed), 4)
        top = bound(simple)
        for place in itertools.product(*map(range, DIMS.values())):
            position = dict(zip((M, N, K), place, strict=True))
            assert at(plain, position) == at(simple, position), f"seed {seed}: {plain} became {simple}"
            assert top is None or 0 <= at(simple, position) < sizes.value(top, DIMS), f"seed {seed}"


def test_a_view_is_taken_apart_and_put_together() -> None:
    flat = plus(times(Index(M), N.size), Index(N))
    assert quotient(flat, N.size) == Index(M)
    assert remainder(flat, N.size) == Index(N)
    assert plus(times(quotient(Index(K), size(3)), size(3)), remainder(Index(K), size(3))) == Index(K)
    assert remainder(times(Index(N), K.size), size("M*K")) == times(remainder(Index(N), M.size), K.size)
    assert plus(times(Index(M), size("2*N")), times(Index(N), size(2))) == times(flat, size(2))
    assert minus(extent(size("N")), extent(size("N"))) == Const(0)


def test_where_a_slice_begins_is_taken_off_and_put_back() -> None:
    begin = extent(size("N - 2"))
    assert plus(minus(Index(N), begin), begin) == Index(N)


def test_the_places_of_a_triangle_stay_below_their_bounds() -> None:
    place = Index(Axis("place", sizes.size(10)))
    row = Map("triangle_row", (place,))
    assert bound(row) == 4
    assert bound(Map("triangle_column", (place, row))) == 4
    assert bound(minus(Const(3), row)) == 4
    assert bound(minus(Const(2), row)) is None  # It may be negative.
