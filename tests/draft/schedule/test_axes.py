"""Axes are walked in the order in which memory lies."""

import itertools

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import plus, times
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Index, Load, Reduce, Store, op
from pytorch_to_triton.draft.schedule.axes import in_memory_order

N, C, H, W = (Axis(name, sizes.size(name.upper())) for name in "nchw")
CHANNELS_LAST = Buffer("x", tuple(a.size for a in (N, H, W, C)), "float32")


def total(load: Load) -> Cluster:
    """The sum of each image."""
    return Cluster(
        "f", (Store(Buffer("y", (N.size,), "float32"), (Index(N),), Reduce(SUM, (load,), (C, H, W))),)
    )


def test_reduced_axes_follow_the_operand_s_memory() -> None:
    load = Load(CHANNELS_LAST, tuple(map(Index, (N, H, W, C))))
    assert in_memory_order((C, H, W), total(load)) == (H, W, C)


def test_an_axis_that_only_decides_what_is_read_has_no_place_in_memory() -> None:
    row = Buffer("x", (N.size, H.size, W.size), "float32")
    load = Load(row, (Index(N), Index(H), Index(W)), where=op("lt", Index(C), 2))
    assert in_memory_order((C, H, W), total(load)) == (C, H, W)


def test_axes_of_one_dimension_are_in_the_order_in_which_they_count_in_memory() -> None:
    """Whichever order they are given in: a set's differs from process to process."""
    channel, inner, row = Axis("c", sizes.size(32)), Axis("d", sizes.size(10)), Axis("row", sizes.size("M"))
    place = plus(times(Index(channel), inner.size), Index(inner))
    x = Buffer("x", (row.size, sizes.size(320)), "float32")
    cluster = Cluster("one", (Store(x, (Index(row), place), Load(x, (Index(row), place))),))
    for given in itertools.permutations((channel, inner, row)):
        assert in_memory_order(given, cluster) == (row, channel, inner)
