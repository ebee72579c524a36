"""Equal values are found equal soon, however deep they are and however often they share operands."""

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import substitute
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.ir.values import Axis, Const, Index, Reduce, Value, op

ROW, COL, K = (Axis(name, size(7)) for name in "ijk")


def doubled(depth: int, leaf: Value) -> Value:
    """2**depth times the leaf, by as many additions of a value to itself."""
    value = leaf
    for _ in range(depth):
        value = op("add", value, value)
    return value


def test_values_that_share_operands_at_each_of_many_levels_are_compared() -> None:
    assert doubled(60, Index(ROW)) == doubled(60, Index(ROW))
    assert doubled(60, Index(ROW)) != doubled(60, Index(COL))
    assert {doubled(60, Index(ROW)): 1}[doubled(60, Index(ROW))] == 1


def test_indices_are_replaced_below_many_reductions_of_reductions() -> None:
    value: Value = op("mul", Index(ROW), Const(2))
    for _ in range(20):
        total = Reduce(SUM, (op("add", value, Index(K)),), (K,))
        value = op("add", op("mul", total, value), total)
    replaced = substitute(value, {ROW: Index(COL)})
    assert substitute(replaced, {COL: Index(ROW)}) == value
