"""Values rewritten mean the same."""

import numpy as np

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import picked
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Index, Load, Reduce, Store, Value, op

from ..evaluate import evaluate

M, N = Axis("m", sizes.size("M")), Axis("n", sizes.size("N"))
LABEL = Load(Buffer("label", (M.size,), "int64"), (Index(M),))
WEIGHT = Load(Buffer("weight", (M.size,), "float32"), (Index(M),))
ROWS = Load(Buffer("rows", (M.size, N.size), "float32"), (Index(M), Index(N)))


def sum_where(hit: Value, x: Value) -> Reduce:
    return Reduce(SUM, (op("where", hit, x, 0.0),), (N,))


def sums(value: Value) -> list[float]:
    arrays = {"label": np.array([2, 0, -100, 7]), "weight": np.array([0.5, 2.0, 3.0, 4.0])}
    out = Buffer("out", (M.size,), "float32")
    evaluate(Cluster("out", (Store(out, (Index(M),), value),)), arrays, {"M": 4, "N": 3})
    return [float(x) for x in arrays["out"]]


def test_a_sum_of_what_is_at_one_place_reduces_nothing_and_is_zero_where_that_is_not_on_the_axis() -> None:
    hit = op("eq", LABEL, Index(N))
    for condition in (hit, op("and", hit, op("ne", LABEL, 0)), op("and", op("ne", LABEL, 0), hit)):
        whole = sum_where(condition, WEIGHT)
        found = picked(whole)
        assert not isinstance(found, Reduce)
        assert sums(found) == sums(whole)
    assert sums(picked(sum_where(hit, WEIGHT))) == [0.5, 2.0, 0.0, 0.0]


def test_a_sum_of_more_than_one_place_or_of_what_varies_stays() -> None:
    for whole in (
        sum_where(op("le", Index(N), LABEL), WEIGHT),
        sum_where(op("eq", LABEL, Index(N)), ROWS),
        sum_where(op("eq", op("mul", Index(N), Index(N)), Index(N)), WEIGHT),
    ):
        assert picked(whole) == whole
