"""Statistics taken in one pass are those of passes one by one, also in rows with NaN and infinities."""

import numpy as np
import pytest

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.monoids import MAX, ONLINE_SOFTMAX, PEAK, SUM, WEIGHTED_SOFTMAX
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Index, Load, Reduce, Store, Value, op
from pytorch_to_triton.draft.schedule.online import online_softmax, with_corrected_means

from ..evaluate import evaluate

M, N = Axis("m", sizes.size("M")), Axis("n", sizes.size("N"))
X = Load(Buffer("x", (M.size, N.size), "float32"), (Index(M), Index(N)))
ROWS = np.array([
    [1.0, 90.0, -3.0],
    [np.nan, 1.0, 2.0],
    [np.inf, 1.0, 2.0],
    [-np.inf, -np.inf, -np.inf],
    [np.nan, np.inf, -np.inf],
    [-np.inf, 0.5, -np.inf],
])  # fmt: skip


def below(monoid: object) -> Value:
    return op("sub", X, Reduce(monoid, (X,), (N,)))


def total(v: Value) -> Reduce:
    return Reduce(SUM, (v,), (N,))


LOG_SUM = op("log", total(op("exp", below(MAX))))
BY_HAND = {
    "softmax": op("div", op("exp", below(MAX)), total(op("exp", below(MAX)))),
    "log softmax": op("sub", below(MAX), LOG_SUM),
    "sum": total(op("exp", below(MAX))),
    "log of the sum": op("add", LOG_SUM, Reduce(MAX, (X,), (N,))),
    "largest": Reduce(MAX, (X,), (N,)),
    "chosen": op("where", op("lt", X, 0.0), 0.0, below(MAX)),
}
IN_ONE_PASS = {"softmax", "log softmax"}


def stored(value: Value) -> Cluster:
    return Cluster("y", (Store(Buffer("y", (M.size, N.size), "float32"), (Index(M), Index(N)), value),))


@pytest.mark.parametrize("name", BY_HAND)
def test_a_softmax_by_hand_is_taken_in_one_pass_where_nan_and_infinities_show_all_the_same(name: str) -> None:
    plain = stored(BY_HAND[name])
    statistics = online_softmax(plain)
    assert (ONLINE_SOFTMAX in {r.monoid for r in statistics.reduces()}) == (name in IN_ONE_PASS)
    one_by_one, at_once = {"x": ROWS}, {"x": ROWS}
    with np.errstate(invalid="ignore", divide="ignore"):
        evaluate(plain, one_by_one, {"M": len(ROWS), "N": 3})
        evaluate(statistics, at_once, {"M": len(ROWS), "N": 3})
    np.testing.assert_allclose(at_once["y"], one_by_one["y"], rtol=1e-12)


def test_what_waits_for_the_sum_of_a_row_is_added_up_in_a_pass_that_knows_the_maximum() -> None:
    shares, log_sum = op("exp", below(PEAK)), op("log", total(op("exp", below(PEAK))))
    entropy = total(op("mul", op("div", shares, total(shares)), op("sub", below(PEAK), log_sum)))
    monoids = [r.monoid for r in online_softmax(stored(entropy)).reduces()]
    assert WEIGHTED_SOFTMAX not in monoids
    weights = Load(Buffer("w", (N.size,), "float32"), (Index(N),))
    weighted = total(op("mul", op("div", shares, total(shares)), weights))
    assert WEIGHTED_SOFTMAX in {r.monoid for r in online_softmax(stored(weighted)).reduces()}


def test_equal_values_deviate_by_nothing_from_a_mean_that_was_rounded() -> None:
    count = op("to_float", extent(N.size))
    centered = op("sub", X, op("div", total(X), count))
    variance = op("div", total(op("square", centered)), count)
    plain = stored(op("mul", centered, op("rsqrt", op("add", variance, 1e-5))))
    corrected = with_corrected_means(plain)
    assert len(corrected.reduces()) == len(plain.reduces()) + 1
    before, after = {"x": ROWS}, {"x": ROWS}
    with np.errstate(invalid="ignore"):
        evaluate(plain, before, {"M": len(ROWS), "N": 3})
        evaluate(corrected, after, {"M": len(ROWS), "N": 3})
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-12)
    equal = np.full((1, 10), 0.3)
    before, after = {"x": equal}, {"x": equal}
    evaluate(plain, before, {"M": 1, "N": 10})
    evaluate(corrected, after, {"M": 1, "N": 10})
    assert np.abs(before["y"]).max() > 0
    assert np.abs(after["y"]).max() == 0
