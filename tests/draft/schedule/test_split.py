"""Parts of a split reduction read what they need, where they may."""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Index, Load, Reduce, Store, op
from pytorch_to_triton.draft.schedule.split import split


def test_only_what_lies_along_the_split_axis_is_read_within_bounds() -> None:
    n, k = Axis("n", sizes.size("N")), Axis("k", sizes.size("K"))
    x = Load(Buffer("x", (n.size, k.size), "float32"), (Index(n), Index(k)))
    mean = Load(Buffer("mean", (n.size,), "float32"), (Index(n),))
    total = Reduce(SUM, (op("square", op("sub", x, mean)),), (k,))
    partial, _ = split(Cluster("y", (Store(Buffer("y", (n.size,), "float32"), (Index(n),), total),)), k, 512)
    bounded = {load.buffer.name: load.where is not None for load in partial.loads()}
    assert bounded == {"x": True, "mean": False}
