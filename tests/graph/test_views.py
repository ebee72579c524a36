"""Operators that move no data become ways to read a tensor; what would have to copy is refused."""

from collections.abc import Sequence

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.views import View, size_names, split_parts, through, whole
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    Shape,
    SizeRef,
)

TRACED = {"M": 11, "N": 13, "H": 17, "1": 1}


def shape(*expressions: str) -> Shape:
    return Shape(expressions=expressions, traced=tuple(eval(e, {}, dict(TRACED)) for e in expressions))


def argument(value: object) -> NodeArgument:
    match value:
        case list():
            return ArgumentList(items=tuple(argument(v) for v in value))
        case str():
            return SizeRef(expression=value, traced=eval(value, {}, dict(TRACED)))
        case int() | None:
            return Literal_(value=value)
    raise AssertionError(value)


def node(op: str, arguments: Sequence[object] = (), to: Shape | None = None) -> Node:
    args = (NodeRef(name="x"), *(argument(a) for a in arguments))
    return Node(name="y", op=f"aten.{op}", args=args, kwargs={}, shape=to, dtype="float32", line=3)


def read(view: View) -> tuple[list[str], list[str], str]:
    """Sizes, strides and offset as text."""
    offset = " + ".join(str(t) for t in view.offset) or "0"
    return [str(d.size) for d in view.dims], [str(d.stride) for d in view.dims], offset


X = whole("x", shape("M", "N"))


def test_a_whole_tensor_is_contiguous() -> None:
    assert read(X) == (["M", "N"], ["N", "1"], "0")
    assert X.aligned


def test_a_transpose_swaps_sizes_and_strides() -> None:
    assert read(through(node("transpose.int", (0, -1)), X)) == (["N", "M"], ["1", "N"], "0")
    assert through(node("t.default"), X) == through(node("permute.default", ([1, 0],)), X)


def test_a_slice_cuts_one_dimension_and_moves_the_start() -> None:
    gate = whole("x", shape("M", "2*H"))
    cut = through(node("slice.Tensor", (1, "H", "2*H"), shape("M", "H")), gate)
    assert read(cut) == (["M", "H"], ["2 * H", "1"], "H")
    assert not cut.aligned


def test_a_slice_with_a_step_multiplies_the_stride() -> None:
    gate = whole("x", shape("M", "2*H"))
    cut = through(node("slice.Tensor", (1, 0, 1000, 2), shape("M", "H")), gate)
    assert read(cut) == (["M", "H"], ["2 * H", "2"], "0")


def test_a_slice_from_the_end_counts_from_the_size() -> None:
    last = through(node("slice.Tensor", (1, -1, 9223372036854775807), shape("M", "1")), X)
    assert read(last) == (["M", "1"], ["N", "1"], "(N - 1)")


def test_a_slice_of_everything_changes_nothing() -> None:
    assert through(node("slice.Tensor", (1, 0, 9223372036854775807), shape("M", "N")), X) == X


def test_a_selection_drops_the_dimension() -> None:
    assert read(through(node("select.int", (0, 3)), X)) == (["N"], ["1"], "3 * N")
    assert read(through(node("select.int", (1, -1)), X)) == (["M"], ["N"], "(N - 1)")


def test_an_expanded_dimension_has_stride_zero() -> None:
    column = through(node("unsqueeze.default", (-1,)), whole("v", shape("M")))
    wide = through(node("expand.default", (["M", "N"],), shape("M", "N")), column)
    assert read(wide) == (["M", "N"], ["1", "0"], "0")
    assert wide.aligned


def test_an_expansion_adds_dimensions_in_front() -> None:
    wide = through(node("expand.default", (["M", "N"],), shape("M", "N")), whole("w", shape("N")))
    assert read(wide) == (["M", "N"], ["0", "1"], "0")


def test_a_squeeze_drops_dimensions_of_one_element_only() -> None:
    column = whole("x", shape("M", "1"))
    assert read(through(node("squeeze.dim", (1,)), column))[0] == ["M"]
    assert read(through(node("squeeze.dim", (0,)), column))[0] == ["M", "1"]


def test_a_contiguous_tensor_is_reshaped_in_place() -> None:
    flat = through(node("view.default", (["M*N"],), shape("M*N")), X)
    assert read(flat) == (["M * N"], ["1"], "0")
    assert not flat.aligned


def test_a_reshape_that_only_adds_ones_keeps_the_dimensions() -> None:
    row = through(node("reshape.default", (["M", 1, "N"],), shape("M", "1", "N")), X)
    assert read(row) == (["M", "1", "N"], ["N", "0", "1"], "0")
    assert row.aligned


def test_a_reshape_of_a_transposed_tensor_is_refused() -> None:
    turned = through(node("t.default"), X)
    with pytest.raises(NotConvertible, match="a reshape of a transposed or cut tensor"):
        through(node("reshape.default", (["M*N"],), shape("M*N")), turned)


def test_a_split_gives_slices_side_by_side() -> None:
    parts = split_parts(node("split_with_sizes.default", (["H", "H"], 1)), whole("x", shape("M", "2*H")))
    assert [read(p) for p in parts] == [
        (["M", "H"], ["2 * H", "1"], "0"),
        (["M", "H"], ["2 * H", "1"], "H"),
    ]


def test_the_third_part_of_a_split_starts_behind_both_others() -> None:
    third = split_parts(node("split_with_sizes.default", (["M", "H", "N"], 0)), whole("x", shape("M+H+N")))[2]
    assert read(third) == (["N"], ["1"], "(M + H)")


def test_a_view_knows_the_dims_that_it_mentions() -> None:
    assert size_names(through(node("select.int", (1, -1)), X)) == {"M", "N"}
