"""What belongs together is one kernel, in whichever order it is written, and lanes lie where memory does."""

import pytest

from pytorch_to_triton.schema.graph import Graph

from .graphs import graph, node, text


def norm(operands: tuple[str, str]) -> Graph:
    rows, one = ("M", "N"), ("M", "1")
    nodes = (
        node("p", "pow.Tensor_Scalar", ("x", 2), rows),
        node("m", "mean.dim", ("p", [-1], True), one),
        node("r", "rsqrt.default", ("m",), one),
        node("h", "mul.Tensor", ("x", "r"), rows),
        node("y", "mul.Tensor", operands, rows),
    )
    return graph({"x": rows, "w": ("N",)}, nodes, ("y",))


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("operands", [("w", "h"), ("h", "w")])
def test_a_norm_is_one_kernel_whichever_factor_stands_first(operands: tuple[str, str], stage: int) -> None:
    source = text(norm(operands), stage)
    kernels = [line for line in source.splitlines() if line.startswith("def ") and "_kernel" in line]
    assert len(kernels) == 1


def test_a_reduction_goes_by_the_neighbours_of_its_largest_operand() -> None:
    """Tokens [B, S, N] times a mask [B, S], summed over S: lanes run along N."""
    nodes = (
        node("u", "unsqueeze.default", ("mask", -1), ("B", "S", "1")),
        node("t", "mul.Tensor", ("x", "u"), ("B", "S", "N")),
        node("y", "sum.dim_IntList", ("t", [1]), ("B", "N")),
    )
    source = text(graph({"x": ("B", "S", "N"), "mask": ("B", "S")}, nodes, ("y",)), 2)
    assert "% N" not in source
    assert "* N + col[None, :]" in source


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("pool", ["max_pool2d", "avg_pool2d"])
def test_what_goes_on_with_the_elements_of_a_pool_is_in_its_kernel(pool: str, stage: int) -> None:
    image, pooled = ("B", "2*M", "2*N"), ("B", "M", "N")
    nodes = (
        node("p", f"{pool}.default", ("x", [2, 2], [2, 2]), pooled),
        node("s", "silu.default", ("p",), pooled),
        node("y", "mul.Tensor", ("s", "z"), pooled),
    )
    source = text(graph({"x": image, "z": pooled}, nodes, ("y",)), stage)
    assert source.count("_kernel(") == 1


def test_a_pool_that_several_elements_read_is_computed_once() -> None:
    image, pooled, doubled = ("B", "2*M", "2*N"), ("B", "M", "N"), ("B", "2*M", "N")
    nodes = (
        node("p", "max_pool2d.default", ("x", [2, 2], [2, 2]), pooled),
        node("g", "mul.Tensor", ("p", "z"), pooled),
        node("y", "repeat.default", ("g", [1, 2, 1]), doubled),
    )
    source = text(graph({"x": image, "z": pooled}, nodes, ("y",)), 2)
    assert source.count("_kernel(") == 2


def test_a_table_of_sines_that_all_rows_share_is_computed_once() -> None:
    """x [B, S, N] times the sines of angles [S, N]: as many sines as angles."""
    nodes = (
        node("s", "sin.default", ("angle",), ("S", "N")),
        node("y", "mul.Tensor", ("x", "s"), ("B", "S", "N")),
    )
    source = text(graph({"x": ("B", "S", "N"), "angle": ("S", "N")}, nodes, ("y",)), 2)
    first, second = source.split("@triton.jit")[1:]
    assert "tl.sin" in first
    assert "tl.sin" not in second


@pytest.mark.parametrize("listed", ["tril", "triu"])
def test_values_written_to_the_places_of_a_triangle_are_read_by_their_number(listed: str) -> None:
    """PyTorch's gradient of `products[:, rows, columns]`: nobody searches, and no list of places is made."""
    nodes = (
        node("places", f"{listed}_indices.default", (60, 60, 0), ("2", "1830"), "int64"),
        node("rows", "select.int", ("places", 0, 0), ("1830",), "int64"),
        node("columns", "select.int", ("places", 0, 1), ("1830",), "int64"),
        node("zeros", "full.default", (["B", 60, 60], 0.0), ("B", "60", "60")),
        node("y", "index_put.default", ("zeros", [None, "rows", "columns"], "grad", True), ("B", "60", "60")),
    )
    drafted = text(graph({"grad": ("B", "1830")}, nodes, ("y",)), 2).partition("@triton.jit")[2]
    assert drafted.count("_kernel(") == 1
    assert "_indices" not in drafted
    assert " in range(" not in drafted


@pytest.mark.parametrize("read", [{0}, {1}, {0, 1}])
def test_an_extreme_is_found_with_its_position_only_where_something_reads_it(read: set[int]) -> None:
    both = node("both", "max.dim", ("x", 1), ("M",)).model_copy(update={"shape": None})
    parts = [
        node(f"part{i}", "any", ("both", i), ("M",), dtype).model_copy(update={"op": "getitem"})
        for i, dtype in enumerate(("float32", "int64"))
        if i in read
    ]
    source = text(graph({"x": ("M", "N")}, (both, *parts), tuple(p.name for p in parts)), 2)
    assert ("first_largest" in source) == (1 in read)
