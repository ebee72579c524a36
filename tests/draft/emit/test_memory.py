"""Addresses have the shape of what is read there."""

from pytorch_to_triton.draft.emit.kernel import printed
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Const, Index, Load, Store, op
from pytorch_to_triton.draft.schedule.schedule import Schedule, Walk


def test_a_pointer_is_repeated_where_only_its_mask_varies() -> None:
    n = Axis("n", sizes.size("N"))
    one = Load(
        Buffer("x", (sizes.size(1),), "float32"), (Const(0),), where=op("lt", Index(n), Const(3)), other=0.0
    )
    cluster = Cluster("y", (Store(Buffer("y", (n.size,), "float32"), (Index(n),), one),))
    schedule = Schedule({"n": Walk("grid", "BLOCK")}, ("n",), ({"BLOCK": 64},))
    text = "\n".join(printed(cluster, schedule, "Copy.").lines)
    assert "tl.load(tl.broadcast_to(x_ptr, [BLOCK]), mask=n_mask & (n < 3), other=0.0)" in text
