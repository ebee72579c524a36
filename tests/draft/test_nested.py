"""What one kernel would reduce again and again is reduced once, by a kernel of its own."""

from pytorch_to_triton.draft.groups import Group, group_of
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer, Cluster, Store
from pytorch_to_triton.draft.lower.row import ROWS, Context, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source
from pytorch_to_triton.draft.patterns import attention, columns, rows


def cluster_of_attention(head: int) -> Cluster:
    load_rows()
    names = Names()
    shape = [sizes.size("L"), sizes.size(head)]
    given = [source(names, name, shape, "float32") for name in ("q", "k", "v")]
    context = Context(names, tuple(shape), "float32", "out")
    found = ROWS["aten.scaled_dot_product_attention.default"].lowered(context, given, {})
    assert isinstance(found, Tensor)
    return Cluster("out", (Store(Buffer("out", found.shape, "float32"), found.indices, found.value),))


def test_a_narrow_head_is_attention_in_one_kernel() -> None:
    group = group_of(cluster_of_attention(64), ())
    assert isinstance(group, Group)
    assert group.pattern is attention


def test_a_wide_head_is_no_row_whose_softmax_is_taken_for_each_element() -> None:
    cluster = cluster_of_attention(1024)
    assert rows.match(cluster) is not None
    assert columns.match(cluster) is not None
