"""Tensors side by side in a dimension are stored part by part, and nothing chooses between them."""

import numpy as np

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import minus, quotient, remainder
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Cluster,
    Extent,
    Index,
    Load,
    Map,
    Store,
    Value,
    op,
)
from pytorch_to_triton.draft.schedule.parts import in_parts

from ..evaluate import evaluate

N, M = sizes.size("N"), Axis("m", sizes.size("M"))
COL = Axis("col", 2 * N)
X, Y = (Buffer(name, (M.size, N), "float32") for name in ("x", "y"))
DIMS = {"M": 3, "N": 4}


def cluster(value: Value) -> Cluster:
    out = Buffer("out", (M.size, COL.size), "float32")
    return Cluster("out", (Store(out, (Index(M), Index(COL)), value),))


def beside(first: Value, second: Value, is_first: Value) -> Cluster:
    """x where a column is of the first part, else y."""
    x = Load(X, (Index(M), first), where=is_first)
    y = Load(Y, (Index(M), second), where=op("not", is_first))
    return cluster(op("where", is_first, x, y))


def computed(given: Cluster) -> list[list[float]]:
    arrays = {name: start + np.arange(12.0).reshape(3, 4) for name, start in (("x", 100.0), ("y", 200.0))}
    evaluate(given, arrays, DIMS)
    return [list(map(float, row)) for row in arrays["out"]]


def choices(given: Cluster) -> int:
    conditions = [v for v in given.values() if isinstance(v, Map) and v.fn == "where"]
    return len(conditions) + sum(v.where is not None for v in given.loads())


def test_tensors_one_behind_the_other_or_in_turn_are_stored_apart_without_a_choice() -> None:
    behind = beside(Index(COL), minus(Index(COL), Extent(N)), op("lt", Index(COL), Extent(N)))
    half = quotient(Index(COL), sizes.size(2))
    in_turn = beside(half, half, op("eq", remainder(Index(COL), sizes.size(2)), 0))
    for whole, turns in ((behind, False), (in_turn, True)):
        found = in_parts(whole)
        assert found is not None
        divided, parts = found
        assert parts.in_turn == turns
        assert len(divided.stores) == 2
        assert choices(whole) == 3
        assert choices(divided) == 0
        assert computed(divided) == computed(whole)


def test_parts_that_are_not_of_one_size_stay_a_choice() -> None:
    three = op("lt", Index(COL), 3)
    assert in_parts(cluster(op("where", three, Load(X, (Index(M), Index(COL)), where=three), 0.0))) is None
