"""What lanes past the end hold is known only where nothing unknown could change it."""

import sympy

from pytorch_to_triton.draft.ir.padding import known
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Const, Index, Load, op

ROW, COL = Axis("row", sympy.Symbol("M")), Axis("col", sympy.Symbol("N"))
IDS = Load(Buffer("ids", (COL.size,), "int64"), (Index(COL),))
X = Load(Buffer("x", (COL.size,), "float32"), (Index(COL),))
PAST = frozenset({COL})


def test_a_comparison_of_something_unknown_is_unknown() -> None:
    same = op("to_float", op("eq", IDS, Index(ROW)))
    assert known(same, {IDS: None}, PAST) is None
    assert known(op("larger", X, 0.0), {X: None}, PAST) is None


def test_zero_is_equal_to_the_first_index() -> None:
    assert known(op("eq", IDS, Index(ROW)), {IDS: 0}, PAST) is None
    assert known(op("eq", IDS, Index(ROW)), {IDS: -1}, PAST) is False


def test_what_is_chosen_without_the_unknown_is_known() -> None:
    assert known(op("where", Const(False), X, 2.0), {X: None}, PAST) == 2.0
    assert known(op("mul", X, X), {X: 0.0}, PAST) == 0.0
