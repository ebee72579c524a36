"""Addresses have the shape of what is read there."""

from pytorch_to_triton.draft.emit.kernel import printed
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import quotient, remainder
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Const, Index, Load, Reduce, Store, op
from pytorch_to_triton.draft.schedule.schedule import Schedule, Walk


def test_a_pointer_is_repeated_where_only_its_mask_varies() -> None:
    n = Axis("n", sizes.size("N"))
    one = Load(
        Buffer("x", (sizes.size(1),), "float32"), (Const(0),), where=op("lt", Index(n), Const(3)), other=0.0
    )
    cluster = Cluster("y", (Store(Buffer("y", (n.size,), "float32"), (Index(n),), one),))
    schedule = Schedule({"n": Walk("grid", "BLOCK")}, ("n",), ({"BLOCK": 64},))
    text = "\n".join(printed(cluster, schedule, {}).body)
    assert "tl.load(tl.broadcast_to(x_ptr, [BLOCK]), mask=n_mask & (n < 3), other=0.0)" in text


def test_what_a_view_took_apart_is_an_offset_again() -> None:
    """Rows of 6*5 pixels as (batch, height, width): n = i//30, h = i//5 % 6, w = i % 5."""
    i = Axis("i", sizes.size(240))
    at = Index(i)
    n, h, w = (
        quotient(at, sizes.size(30)),
        remainder(quotient(at, sizes.size(5)), sizes.size(6)),
        remainder(at, sizes.size(5)),
    )
    image = tuple(map(sizes.size, (8, 3, 6, 5)))
    read = Load(Buffer("x", image, "float32"), (n, Const(2), h, w))
    cluster = Cluster("y", (Store(Buffer("y", (*image[:1], *image[2:]), "float32"), (n, h, w), read),))
    schedule = Schedule({"i": Walk("grid", "BLOCK")}, ("i",), ({"BLOCK": 16},))
    text = "\n".join(printed(cluster, schedule, {}).body)
    assert "tl.store(y_ptr + i," in text
    assert "x_ptr + (i // 30 * 3 + 2) * 30 + i % 30" in text


def test_an_unrolled_index_is_a_number_without_methods() -> None:
    """Triton's compiler gives it as a Python int, which has no `.to`; the interpreter would not notice."""
    n, c = Axis("n", sizes.size(2)), Axis("c", sizes.size(576))
    total = Reduce(SUM, (Load(Buffer("x", (n.size, c.size), "float32"), (Index(n), Index(c))),), (n,))
    cluster = Cluster("y", (Store(Buffer("y", (c.size,), "float32"), (Index(c),), total),))
    schedule = Schedule({"c": Walk("grid", "BLOCK"), "n": Walk("unroll")}, ("c",), ({"BLOCK": 64},))
    text = "\n".join(printed(cluster, schedule, {}).body)
    assert "tl.cast(n, INDEX) * 576" in text
    assert "n.to(" not in text
