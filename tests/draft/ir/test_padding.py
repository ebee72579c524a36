"""What lanes past the end hold is known only where nothing unknown can change it."""

import pytest

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.padding import known
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Index,
    Load,
    Number,
    Reduce,
    Value,
    op,
)

M, N = Axis("m", size("M")), Axis("n", size("N"))
X = Load(Buffer("x", (M.size, N.size), "float32"), (Index(M), Index(N)))
TOP = Load(Buffer("top", (M.size,), "float32"), (Index(M),))
COUNT = Argument("count", "N", "int")

ROWS: dict[str, tuple[Value, Number | None, Number | None]] = {
    "a product of 0": (op("mul", X, 2.0), 0.0, 0.0),
    "a product of 0 and something unknown": (op("mul", X, TOP), 0.0, 0.0),
    "a sum with something unknown": (op("add", X, TOP), 0.0, None),
    "an exponential below the maximum": (op("exp", op("sub", X, TOP)), float("-inf"), 0.0),
    "a maximum with something unknown": (op("maximum", X, TOP), 0.0, None),
    "a minimum with something unknown": (op("minimum", X, TOP), 0.0, None),
    "the maximum of the lowest": (op("maximum", X, TOP), float("-inf"), None),
    "what was in memory": (op("mul", X, 0.0), None, None),
    "a comparison": (op("gt", X, 0.0), 0.0, False),
    "a comparison with something unknown": (op("gt", X, TOP), 0.0, None),
    "an equation with something unknown": (op("eq", X, TOP), 0.0, None),
    "an equation of the same": (op("eq", X, op("mul", X, 1.0)), 0.0, True),
    "an equation with an index": (op("eq", Load(TOP.buffer, (Index(M),)), Index(N)), 0.0, False),
    "a choice by something unknown": (op("where", op("gt", TOP, 0.0), X, 1.0), 0.0, None),
    "a choice between equals": (op("where", op("gt", TOP, 0.0), X, 0.0), 0.0, 0.0),
    "an index below a number": (op("where", op("lt", Index(N), COUNT), X, 1.0), 0.0, None),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_lane_past_the_end_holds(name: str) -> None:
    value, loaded, held = ROWS[name]
    assert known(value, {X: loaded}, frozenset({N})) == held


def test_the_bound_of_the_axis_itself_is_false_past_its_end() -> None:
    inside = op("lt", Index(N), op("add", COUNT, 0))
    own = op("lt", Index(N), Index(M))
    assert known(op("where", inside, 1.0, 0.0), {}, frozenset({N})) is None
    assert known(op("where", own, 1.0, 0.0), {}, frozenset({N})) is None


def test_a_sum_of_zeros_is_zero() -> None:
    assert known(Reduce(SUM, (op("mul", X, 2.0),), (N,)), {X: 0.0}, frozenset({M})) == 0.0
    assert known(Reduce(SUM, (op("add", X, 1.0),), (N,)), {X: 0.0}, frozenset({M})) != 0.0
