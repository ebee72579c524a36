"""Axes are walked in the order in which memory lies."""

from pytorch_to_triton.draft.ir import sizes
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
