"""Broadcasting joins axes, neighbouring axes merge where memory allows, and what does not fit says why."""

from pytorch_to_triton.convert.draft.axes import Misfit, Nest, nest
from pytorch_to_triton.convert.draft.partition import partition, stored
from pytorch_to_triton.graph.program import program
from pytorch_to_triton.schema.graph import Graph

from .graphs import graph, node


def nest_of(given: Graph) -> Nest | Misfit:
    """The nest of all steps together."""
    traced = program(given)
    return nest(traced, traced.steps, stored(traced, traced.steps))


def sizes(found: Nest | Misfit) -> list[str]:
    assert isinstance(found, Nest), found
    return [str(a.size) for a in found.axes]


def strides(found: Nest | Misfit, buffer: str) -> list[str]:
    """How the kernel walks a tensor that it reads."""
    assert isinstance(found, Nest), found
    (memory,) = (m for m in found.loads.values() if m.buffer == buffer)
    return [str(s) for s in memory.strides]


def test_elementwise_work_on_one_tensor_is_one_flat_axis() -> None:
    exp = node("e", "exp.default", ("x",), ("B", "S", "H"))
    assert sizes(nest_of(graph({"x": ("B", "S", "H")}, (exp,), ("e",)))) == ["B * H * S"]


def test_a_row_vector_keeps_its_axis_apart() -> None:
    add = node("a", "add.Tensor", ("x", "w"), ("B", "S", "H"))
    found = nest_of(graph({"x": ("B", "S", "H"), "w": ("H",)}, (add,), ("a",)))
    assert sizes(found) == ["B * S", "H"]
    assert strides(found, "w") == ["0", "1"]


def test_a_middle_axis_that_is_broadcast_keeps_all_three_apart() -> None:
    add = node("a", "add.Tensor", ("x", "y"), ("B", "S", "H"))
    assert sizes(nest_of(graph({"x": ("B", "S", "H"), "y": ("B", "1", "H")}, (add,), ("a",)))) == [
        "B",
        "S",
        "H",
    ]


def test_a_transposed_operand_keeps_axes_apart_and_swaps_strides() -> None:
    turned = node("t", "t.default", ("y",), ("M", "N"))
    add = node("a", "add.Tensor", ("x", "t"), ("M", "N"))
    found = nest_of(graph({"x": ("M", "N"), "y": ("N", "M")}, (turned, add), ("a",)))
    assert sizes(found) == ["M", "N"]
    assert strides(found, "y") == ["1", "M"]


def test_axes_around_a_reduced_one_are_not_merged_with_it() -> None:
    total = node("s", "sum.dim_IntList", ("x", [1], False), ("B", "H"))
    found = nest_of(graph({"x": ("B", "S", "H")}, (total,), ("s",)))
    assert sizes(found) == ["B", "S", "H"]
    assert isinstance(found, Nest)
    assert found.reduced == 1


def test_two_neighbouring_reduced_axes_become_one() -> None:
    total = node("s", "sum.dim_IntList", ("x", [1, 2], False), ("B",))
    found = nest_of(graph({"x": ("B", "S", "H")}, (total,), ("s",)))
    assert sizes(found) == ["B", "H * S"]
    assert isinstance(found, Nest)
    assert found.reduced == 1


def test_reductions_over_different_axes_do_not_share_a_nest() -> None:
    mean = node("m", "mean.dim", ("x", [0], True), ("1", "S", "H"))
    centred = node("c", "sub.Tensor", ("x", "m"), ("B", "S", "H"))
    total = node("s", "sum.dim_IntList", ("c", [1], False), ("B", "H"))
    given = graph({"x": ("B", "S", "H")}, (mean, centred, total), ("s",))
    assert nest_of(given) == Misfit("its reductions run over different axes")
    assert len(partition(program(given), 2)) == 2


def test_a_stored_value_that_does_not_span_the_axes_gets_a_kernel_of_its_own() -> None:
    root = node("r", "sqrt.default", ("v",), ("M", "1"))
    scaled = node("y", "mul.Tensor", ("x", "r"), ("M", "N"))
    given = graph({"x": ("M", "N"), "v": ("M", "1")}, (root, scaled), ("y", "r"))
    found = nest_of(given)
    assert isinstance(found, Misfit)
    assert "does not vary along all the axes" in found.reason
    assert len(partition(program(given), 2)) == 2


def test_a_value_that_is_not_stored_need_not_span_the_axes() -> None:
    root = node("r", "sqrt.default", ("v",), ("M", "1"))
    scaled = node("y", "mul.Tensor", ("x", "r"), ("M", "N"))
    assert sizes(nest_of(graph({"x": ("M", "N"), "v": ("M", "1")}, (root, scaled), ("y",)))) == ["M", "N"]


def test_a_sum_over_an_expanded_dimension_is_refused() -> None:
    wide = node("w", "expand.default", ("v", [19, 23]), ("M", "N"))
    total = node("s", "sum.dim_IntList", ("w", [1], False), ("M",))
    found = nest_of(graph({"v": ("M", "1")}, (wide, total), ("s",)))
    assert isinstance(found, Misfit)
    assert "only repeats values" in found.reason


def test_a_computed_value_read_through_a_slice_starts_another_nest() -> None:
    exp = node("e", "exp.default", ("x",), ("M", "N"))
    row = node("r", "select.int", ("e", 0, 0), ("N",))
    both = node("y", "add.Tensor", ("e", "r"), ("M", "N"))
    found = nest_of(graph({"x": ("M", "N")}, (exp, row, both), ("y",)))
    assert isinstance(found, Misfit)
    assert "through a slice or a reshape" in found.reason


def test_a_matrix_plus_its_own_transpose_meets_one_axis_twice() -> None:
    turned = node("t", "t.default", ("e",), ("M", "M"))
    exp = node("e", "exp.default", ("x",), ("M", "M"))
    both = node("y", "add.Tensor", ("e", "t"), ("M", "M"))
    found = nest_of(graph({"x": ("M", "M")}, (exp, turned, both), ("y",)))
    assert isinstance(found, Misfit)
    assert "meets the same axis twice" in found.reason


def test_steps_join_no_later_kernel_while_one_between_reads_their_values() -> None:
    rows = node("r", "sum.dim_IntList", ("x", [1], True), ("M", "1"))
    centred = node("p", "sub.Tensor", ("x", "r"), ("M", "N"))
    columns = node("t", "sum.dim_IntList", ("p", [0], True), ("1", "N"))
    moved = node("y", "add.Tensor", ("x", "t"), ("M", "N"))
    shares = node("s", "_softmax.default", ("y", 1, False), ("M", "N"))
    traced = program(graph({"x": ("M", "N")}, (rows, centred, columns, moved, shares), ("s",)))
    groups = partition(traced, 3)
    assert len(groups) == 3
    made: set[str] = set()
    for group in groups:
        made |= {step.name for step in group.steps}
        read = {view.source for step in group.steps for view in step.views}
        assert read - {"x"} <= made
