"""A monoid's combination is associative and has its identity; its step takes a tile as combining it would."""

from collections.abc import Sequence
from math import inf, nan

import numpy as np
import pytest

from pytorch_to_triton.draft.ir import monoids
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Cluster,
    Const,
    Get,
    Index,
    Load,
    Monoid,
    Reduce,
    Store,
    Value,
)

from ..evaluate import Array, evaluate

NUMBERS = (-2.0, 0.0, 0.5, 0.5, 3.0, -inf)
WITH_NAN = ("max", "min", "argmax", "argmin")
Fields = tuple[Value, ...]
every = pytest.mark.parametrize("m", monoids.ALL, ids=lambda m: m.name)


def axis(name: str) -> Axis:
    return Axis(name, size("N"))


def elements(m: Monoid, along: Axis) -> Fields:
    """What the monoid carries after one number, for each of some numbers."""
    args = max(max(span) for span in m.spans) + 1
    lifted = m.lift(
        *(Load(Buffer(f"x{i}", (along.size,), dtype(m, i)), (Index(along),)) for i in range(args))
    )
    return m.combine(identity(m), lifted)


def identity(m: Monoid) -> Fields:
    return tuple(map(Const, m.identity))


def dtype(m: Monoid, i: int) -> str:
    return "int64" if "arg" in m.name and i else "float32"


def given(m: Monoid) -> dict[str, Array]:
    numbers = [x for x in NUMBERS if m is not monoids.WELFORD or x > -inf]
    first = np.array([*numbers, *([nan] if m.name in WITH_NAN else [])])
    rest = np.arange(len(first)) if "arg" in m.name else np.linspace(-1.0, 2.0, len(first))
    return {"x0": first, "x1": rest}


def agree(left: Fields, right: Fields, arrays: dict[str, Array], axes: Sequence[Axis]) -> None:
    """Asserts that both are the same along the axes."""
    index = tuple(map(Index, axes))
    for a, b in zip(left, right, strict=True):
        out = [Buffer(name, tuple(x.size for x in axes), "float32") for name in ("left", "right")]
        stores = tuple(Store(buffer, index, v) for buffer, v in zip(out, (a, b), strict=True))
        evaluate(Cluster("both", stores), arrays, {"N": len(arrays["x0"])})
        np.testing.assert_allclose(arrays["left"], arrays["right"], rtol=1e-9, atol=1e-12)


@every
def test_the_identity_changes_nothing(m: Monoid) -> None:
    x = elements(m, axis("a"))
    agree(m.combine(identity(m), x), x, given(m), [axis("a")])
    agree(m.combine(x, identity(m)), x, given(m), [axis("a")])


@every
def test_a_combination_is_associative(m: Monoid) -> None:
    axes = [axis(name) for name in "abc"]
    a, b, c = (elements(m, along) for along in axes)
    agree(m.combine(m.combine(a, b), c), m.combine(a, m.combine(b, c)), given(m), axes)


@pytest.mark.parametrize("m", [m for m in monoids.ALL if m.step], ids=lambda m: m.name)
def test_a_step_takes_a_tile_as_one_after_the_other_does(m: Monoid) -> None:
    assert m.step is not None
    n, carry = axis("n"), elements(m, axis("a"))
    args = tuple(Load(Buffer(f"x{i}", (n.size,), "float32"), (Index(n),)) for i in range(len(m.spans[-1])))
    stepped = dict(m.step(carry, args, (n,)))
    tile = tuple(Get(Reduce(m, args, (n,)), i) for i in range(len(m.identity)))
    agree(tuple(stepped[i] for i in range(len(tile))), m.combine(carry, tile), given(m), [axis("a")])
