"""Parts of a split reduction read what they need, where they may."""

import numpy as np

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import PEAK, SUM
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Index, Load, Reduce, Scan, Store, op
from pytorch_to_triton.draft.schedule.online import online_softmax
from pytorch_to_triton.draft.schedule.split import at_once, can_split_at_once, scans_in_chunks, split, staged

from ..evaluate import evaluate


def test_only_what_lies_along_the_split_axis_is_read_within_bounds() -> None:
    n, k = Axis("n", sizes.size("N")), Axis("k", sizes.size("K"))
    x = Load(Buffer("x", (n.size, k.size), "float32"), (Index(n), Index(k)))
    mean = Load(Buffer("mean", (n.size,), "float32"), (Index(n),))
    total = Reduce(SUM, (op("square", op("sub", x, mean)),), (k,))
    partial, _ = split(Cluster("y", (Store(Buffer("y", (n.size,), "float32"), (Index(n),), total),)), k, 512)
    bounded = {load.buffer.name: load.where is not None for load in partial.loads()}
    assert bounded == {"x": True, "mean": False}


def test_a_padded_operand_that_does_not_vary_along_the_split_axis_is_not_added_past_its_end() -> None:
    n, k = Axis("n", sizes.size("N")), Axis("k", sizes.size("K"))
    x = Load(Buffer("x", (n.size, k.size), "float32"), (Index(n), Index(k)))
    shifted = Load(Buffer("b", (n.size,), "float32"), (op("sub", Index(n), 1),), where=op("ge", Index(n), 1))
    total = Reduce(SUM, (op("add", x, shifted),), (k,))
    whole = Cluster("y", (Store(Buffer("y", (n.size,), "float32"), (Index(n),), total),))
    dims = {"N": 3, "K": 5}
    given = {"x": np.arange(15.0).reshape(3, 5), "b": np.array([10.0, 20.0, 30.0])}
    at_once, in_parts = dict(given), dict(given)
    evaluate(whole, at_once, dims)
    for part in split(whole, k, 4):
        evaluate(part, in_parts, dims)
    np.testing.assert_array_equal(in_parts["y"], at_once["y"])
    np.testing.assert_array_equal(at_once["y"], [10.0, 85.0, 160.0])


def whole_of(x: Load, n: Axis) -> Cluster:
    """A sum, and beside it what is summed."""
    doubled = op("mul", x, 2.0)
    total = Reduce(SUM, (doubled,), (n,))
    stores = (
        Store(Buffer("doubled", (n.size,), "float32"), (Index(n),), doubled),
        Store(Buffer("total", (), "float32"), (), op("sqrt", total)),
    )
    return Cluster("total", stores)


def test_what_is_stored_along_the_split_axis_is_stored_with_the_partial_results() -> None:
    n = Axis("n", sizes.size("N"))
    cluster = whole_of(Load(Buffer("x", (n.size,), "float32"), (Index(n),)), n)
    assert can_split_at_once(cluster)
    partial, final = split(cluster, n, 4)
    assert [s.buffer.name for s in partial.stores] == ["doubled", "partial"]
    assert [s.buffer.name for s in final.stores] == ["total"]
    arrays = {"x": np.arange(6.0)}
    for part in (partial, final):
        evaluate(part, arrays, {"N": 6})
    np.testing.assert_array_equal(arrays["doubled"], 2 * np.arange(6.0))
    np.testing.assert_allclose(arrays["total"], 30.0**0.5)


def test_what_is_made_of_a_sum_along_its_own_axis_takes_kernels_of_their_own() -> None:
    n = Axis("n", sizes.size("N"))
    x = Load(Buffer("x", (n.size,), "float32"), (Index(n),))
    norm = op("sqrt", Reduce(SUM, (op("square", x),), (n,)))
    stores = (
        Store(Buffer("norm", (), "float32"), (), norm),
        Store(Buffer("y", (n.size,), "float32"), (Index(n),), op("div", x, norm)),
    )
    cluster = Cluster("y", stores)
    assert not can_split_at_once(cluster)
    assert [[s.buffer.name for s in part.stores] for part in staged(cluster)] == [
        ["y_sum_0"],
        ["norm"],
        ["y"],
    ]


def test_running_totals_of_chunks_go_on_from_those_before_them() -> None:
    m, n = Axis("m", sizes.size("M")), Axis("n", sizes.size("N"))
    x = Load(Buffer("x", (m.size, n.size), "float32"), (Index(m), Index(n)))
    running = Scan(SUM, (op("square", x),), n, Index(n))
    total = op("sub", running, x)
    whole = Cluster("y", (Store(Buffer("y", (n.size, m.size), "float32"), (Index(n), Index(m)), total),))
    dims = {"M": 2, "N": 11}
    given = {"x": np.arange(22.0).reshape(2, 11)}
    in_parts = dict(given)
    for part in scans_in_chunks(whole, n, 4):
        evaluate(part, in_parts, dims)
    np.testing.assert_allclose(in_parts["y"], (np.cumsum(given["x"] ** 2, 1) - given["x"]).T)


def test_a_softmax_takes_the_maxima_and_sums_of_its_chunks_in_one_pass() -> None:
    m, n = Axis("m", sizes.size("M")), Axis("n", sizes.size("N"))
    x = Load(Buffer("x", (m.size, n.size), "float32"), (Index(m), Index(n)))
    shares = op("exp", op("sub", x, Reduce(PEAK, (x,), (n,))))
    y = Buffer("y", (m.size, n.size), "float32")
    softmax = Cluster("y", (Store(y, (Index(m), Index(n)), op("div", shares, Reduce(SUM, (shares,), (n,)))),))
    statistics, apply = staged(at_once(softmax, online_softmax))
    partial, final = split(statistics, n, 4)
    assert [s.buffer.name for s in partial.stores] == ["partial_max", "partial_sum"]
    assert {load.buffer.name for load in final.loads()} == {"partial_max", "partial_sum"}
    arrays = {"x": np.array([[1.0, 90.0, -3.0, 2.0, 91.0], [-np.inf] * 4 + [0.5]])}
    for part in (partial, final, apply):
        evaluate(part, arrays, {"M": 2, "N": 5})
    shifted = np.exp(arrays["x"] - arrays["x"].max(1, keepdims=True))
    np.testing.assert_allclose(arrays["y"], shifted / shifted.sum(1, keepdims=True), rtol=1e-12)
