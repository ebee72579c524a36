"""What lanes past the end hold is known only where nothing unknown can change it, not even by its sign."""

import math

import pytest

from pytorch_to_triton.draft.ir.indices import extent, quotient
from pytorch_to_triton.draft.ir.monoids import MAX, SUM
from pytorch_to_triton.draft.ir.padding import WITHOUT_ELEMENTS, known
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Const,
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
IDS = Load(Buffer("ids", (N.size,), "int64"), (Index(N),))
LABEL = Load(Buffer("label", (M.size,), "int64"), (Index(M),))
MIDDLE = extent(size("(M - 1) // 2"))
PAST = frozenset({N})
H, B = Axis("h", size("H")), size("B")
ROWS_OF_HEADS = Axis("row", M.size * H.size * B)
COUNT = Argument("count", "N", "int")
CLAMPED = op("larger", X, -1e4)

ROWS: dict[str, tuple[Value, Number | None, Number | None]] = {
    "a product of 0": (op("mul", X, 2.0), 0.0, 0.0),
    "a product of 0 and what may be infinite": (op("mul", X, TOP), 0.0, None),
    "a sum with something unknown": (op("add", X, TOP), 0.0, None),
    "an exponential below the maximum": (op("exp", op("sub", X, TOP)), -math.inf, 0.0),
    "a maximum with something unknown": (op("maximum", X, TOP), 0.0, None),
    "a minimum with something unknown": (op("minimum", X, TOP), 0.0, None),
    "the maximum of the lowest": (op("maximum", X, TOP), -math.inf, None),
    "what was in memory": (op("mul", X, 0.0), None, None),
    "a comparison": (op("gt", X, 0.0), 0.0, False),
    "a comparison with something unknown": (op("gt", X, TOP), 0.0, None),
    "a comparison with NaN that must not hold": (op("not", op("le", TOP, X)), math.inf, None),
    "an equation with something unknown": (op("eq", X, TOP), 0.0, None),
    "an equation of the same": (op("eq", X, op("mul", X, 1.0)), 0.0, True),
    "an equation with an index": (op("eq", Load(TOP.buffer, (Index(M),)), Index(N)), 0.0, False),
    "0 beside an index of another axis": (op("eq", X, Index(M)), 0.0, None),
    "1 beside an index of another axis": (op("eq", X, Index(M)), 1.0, None),
    "0 times an exponential that may be infinite": (op("mul", X, op("exp", X - TOP)), 0.0, None),
    "0 times a share of one": (op("mul", X, op("sigmoid", X - TOP)), 0.0, 0.0),
    "a choice by something unknown": (op("where", op("gt", TOP, 0.0), X, 1.0), 0.0, None),
    "a choice between equals": (op("where", op("gt", TOP, 0.0), X, 0.0), 0.0, 0.0),
    "an index below a number": (op("where", op("lt", Index(N), COUNT), X, 1.0), 0.0, None),
    "0 times an unknown factor": (X * Argument("scale", "scale"), 0.0, 0.0),
    "0 times itself": (X * X, 0.0, 0.0),
    "an infinity by a divisor of unknown sign": (X / Argument("scale", "scale"), -math.inf, None),
    "an infinity by a root": (X / Argument("scale", "math.sqrt(N)"), -math.inf, -math.inf),
    "the larger of something unknown": (op("larger", X, 0.0), None, None),
    "a choice without the unknown": (op("where", Const(False), X, 2.0), None, 2.0),
    "an unknown number equal to an index": (op("to_float", op("eq", IDS, Index(M))), None, None),
    "a whole number beside an unknown one": (op("le", IDS, LABEL), 0, None),
    "0, which half of a small size is": (op("eq", IDS, MIDDLE), 0, None),
    "0, which that is where something unknown is small": (
        op("eq", IDS, op("where", op("gt", LABEL, 0), extent(M.size) - LABEL, MIDDLE)),
        0,
        None,
    ),
    "0, which the first index is": (op("eq", IDS, Index(M)), 0, None),
    "-1, which is no index": (op("eq", IDS, Index(M)), -1, False),
    "a share of a row": (op("exp", X - Reduce(MAX, (X,), (N,))), -math.inf, 0.0),
    "a share of a row whose maximum may be past its end": (
        op("exp", CLAMPED - Reduce(MAX, (CLAMPED,), (N,))),
        -math.inf,
        None,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_lane_past_the_end_holds(name: str) -> None:
    value, loaded, held = ROWS[name]
    assert known(value, {X: loaded, IDS: loaded}, PAST) == held


def test_without_elements_a_maximum_is_the_lowest_number_and_a_share_is_unknown() -> None:
    top = Reduce(MAX, (X,), (N,))
    power = op("exp", op("sub", X, top))
    share = op("div", power, Reduce(SUM, (power,), (N,)))
    assert known(power, {X: -math.inf}, PAST) == 0.0
    assert known(share, {X: -math.inf}, PAST) == 0.0
    assert known(top, {X: -math.inf}, PAST, WITHOUT_ELEMENTS) == -math.inf
    assert known(share, {X: -math.inf}, PAST, WITHOUT_ELEMENTS) is None
    assert known(op("mul", X, 2.0), {X: 0.0}, PAST, WITHOUT_ELEMENTS) == 0.0


def test_the_bound_of_the_axis_itself_is_false_past_its_end() -> None:
    inside = op("lt", Index(N), op("add", COUNT, 0))
    own = op("lt", Index(N), Index(M))
    assert known(op("where", inside, 1.0, 0.0), {}, PAST) is None
    assert known(op("where", own, 1.0, 0.0), {}, PAST) is None


def test_a_sum_of_zeros_is_zero() -> None:
    assert known(Reduce(SUM, (op("mul", X, 2.0),), (N,)), {X: 0.0}, frozenset({M})) == 0.0
    assert known(Reduce(SUM, (op("add", X, 1.0),), (N,)), {X: 0.0}, frozenset({M})) != 0.0


@pytest.mark.parametrize("other", [math.inf, -math.inf])
@pytest.mark.parametrize("scale", [f"scale_{i}" for i in range(8)])
def test_an_infinity_times_a_factor_of_unknown_sign_is_unknown(other: float, scale: str) -> None:
    scaled = op("mul", X, Argument(scale, scale, "float"))
    assert known(scaled, {X: other}, PAST) is None


@pytest.mark.parametrize("compared", ["le", "lt", "gt", "ge"])
@pytest.mark.parametrize(
    "query", [Index(M), quotient(Index(ROWS_OF_HEADS), H.size), quotient(Index(ROWS_OF_HEADS), H.size * B)]
)
def test_what_another_axis_masks_may_be_past_the_end_or_not(compared: str, query: Value) -> None:
    """Causal scores with more queries than keys: the last keys are not masked for the last queries."""
    scores = op("mul", X, Argument("scale", "M ** -0.5", "float"))
    causal = op("where", op(compared, Index(N), query), scores, -math.inf)
    assert known(causal, {X: None}, PAST) is None
    assert known(causal, {X: 0.0}, PAST) is None


def test_a_condition_on_the_row_may_choose_what_lies_past_its_end() -> None:
    absent = Load(Buffer("absent", (M.size,), "bool"), (Index(M),))
    for condition in (absent, op("not", absent), op("and", absent, op("gt", TOP, 0.0))):
        filled = op("where", condition, -1e4, X)
        below = op("exp", op("sub", filled, Reduce(MAX, (filled,), (N,))))
        assert known(below, {X: -math.inf}, PAST) is None


@pytest.mark.parametrize("compared", ["le", "lt", "gt", "ge"])
@pytest.mark.parametrize("bound", [LABEL, Index(M), Index(M) - 3])
def test_a_number_that_fills_a_whole_row_is_its_maximum_past_its_end_too(compared: str, bound: Value) -> None:
    """Attention of a user without history: all scores are -1e9, and so was what lies past their end."""
    filled = op("where", op(compared, Index(N), bound), X, -1e9)
    below = op("exp", op("sub", filled, Reduce(MAX, (filled,), (N,))))
    assert known(below, {X: -math.inf}, PAST) is None
