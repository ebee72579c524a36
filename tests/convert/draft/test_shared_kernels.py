"""What computes the same of different tensors is one kernel: one launch, where none waits for another."""

import ast
import re

import pytest

from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.schema.graph import Graph

from .graphs import graph, node, text

ROW = ("M", "100")


def launched(source: str) -> list[tuple[str, str]]:
    """Each launch's kernel, and the first tensor that it is given."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    found = [(c.func.value, c.args[0]) for c in calls if isinstance(c.func, ast.Subscript)]
    return [(k.id, a.id) for k, a in found if isinstance(k, ast.Name) and isinstance(a, ast.Name)]


def two_softmaxes(first: tuple[str, ...], second: tuple[str, ...], dim: int = -1) -> Graph:
    nodes = (node("s", "softmax.int", ("x", -1), first), node("t", "softmax.int", ("y", dim), second))
    return graph({"x": first, "y": second}, nodes, ("s", "t"))


def test_the_same_of_two_tensors_is_one_kernel_launched_twice_in_the_first_stage() -> None:
    source = text(two_softmaxes(("M", "100"), ("M", "100")), 1)
    assert source.count("@triton.jit") == 1
    assert launched(source) == [("f_out_kernel", "x"), ("f_out_kernel", "y")]
    assert '"""Compute out (and 1 more alike)' in source


@pytest.mark.parametrize("sizes", [("M", "M"), ("M", "N")])
@pytest.mark.parametrize("stage", [2, 3])
def test_the_same_of_two_tensors_is_one_launch_afterwards(sizes: tuple[str, str], stage: Stage) -> None:
    first, second = ((size, "100") for size in sizes)
    source = text(two_softmaxes(first, second), stage)
    assert launched(source) == [("f_out_and_out_2_kernel", "x")]
    programs = "cdiv({0}, {1}) + {2}cdiv({3}, {1})"
    if stage == 2:
        block, prefix = "meta['BLOCK_M']", "triton."
        assert f"lambda meta: ({prefix}{programs.format(sizes[0], block, prefix, sizes[1])},)" in source
    else:
        assert re.search(rf"\[\(cdiv\({sizes[0]}, \d+\) \+ cdiv\({sizes[1]}, \d+\),\)\]", source)


def test_what_waits_for_the_other_is_launched_after_it() -> None:
    square = ("100", "100")
    nodes = (
        node("s", "softmax.int", ("x", -1), square),
        node("c", "cholesky.default", ("s",), square),
        node("t", "softmax.int", ("c", -1), square),
    )
    source = text(graph({"x": square}, nodes, ("t",)), 3)
    assert [kernel for kernel, _ in launched(source)] == ["f_softmax_kernel"] * 2


def test_other_sizes_or_another_dim_are_other_kernels() -> None:
    for graph_ in (
        two_softmaxes(("M", "100"), ("M", "200")),
        two_softmaxes(("M", "100"), ("100", "M")),
        two_softmaxes(("M", "100"), ("M", "100"), dim=0),
    ):
        source = text(graph_, 3)
        assert len({kernel for kernel, _ in launched(source)}) > 1
        assert "more alike" not in source


def test_another_number_is_another_kernel() -> None:
    for numbers in ((2.0, 3.0), (0.0, -0.0)):
        nodes = [node(n, "add.Tensor", (f"{n}_in", x), ("M",)) for n, x in zip("ab", numbers, strict=True)]
        source = text(graph({"a_in": ("M",), "b_in": ("M",)}, tuple(nodes), ("a", "b")), 3)
        assert len({kernel for kernel, _ in launched(source)}) == 2


def test_another_function_is_another_kernel_whatever_the_variables_are_called() -> None:
    """As of `cos, sin = angle.cos(), angle.sin()`: a variable `cos` is tl.cos of something."""
    nodes = [
        node(name, f"{name}.default", ("x",), ("M",)).model_copy(update={"source_name": name})
        for name in ("cos", "sin")
    ]
    tables = [node(f"{n}_row", "expand.default", (n, ["B", "M"]), ("B", "M")) for n in ("cos", "sin")]
    products = [node(f"{n}_y", "mul.Tensor", ("y", f"{n}_row"), ("B", "M")) for n in ("cos", "sin")]
    traced = graph({"x": ("M",), "y": ("B", "M")}, (*nodes, *tables, *products), ("cos_y", "sin_y"))
    source = text(traced, 1)
    assert "tl.cos(" in source
    assert "tl.sin(" in source


def test_a_tensor_taken_twice_is_not_two_tensors() -> None:
    """x*x reads one tensor, y*z two: the same operator, but not the same kernel."""
    square = node("a", "mul.Tensor", ("x", "x"), ("M",))
    product = node("b", "mul.Tensor", ("y", "z"), ("M",))
    source = text(graph({"x": ("M",), "y": ("M",), "z": ("M",)}, (square, product), ("a", "b")), 3)
    assert len({kernel for kernel, _ in launched(source)}) == 2


def test_many_tensors_are_joined_by_pytorch_and_few_by_the_kernel_that_reads_them() -> None:
    def joined(count: int) -> str:
        cat = node("c", "cat.default", (["x"] * count, 1), ("M", str(count * 8)))
        total = node("y", "exp.default", ("c",), ("M", str(count * 8)))
        return text(graph({"x": ("M", "8")}, (cat, total), ("y",)), 3)

    assert "torch.ops.aten.cat" not in joined(8)
    assert "= torch.ops.aten.cat.default(" in joined(9) or "= torch.ops.aten.cat(" in joined(9)
    assert ".contiguous()\n" in joined(9), "what PyTorch returns need not lie in order"


def test_the_elements_of_a_matrix_are_joined_by_the_kernel() -> None:
    """As those of a rotation, which are written side by side."""
    cat = node("c", "cat.default", (["x"] * 16, 1), ("M", "16"))
    total = node("y", "exp.default", ("c",), ("M", "16"))
    assert "torch.ops.aten.cat" not in text(graph({"x": ("M", "1")}, (cat, total), ("y",)), 3)


def test_numbers_that_stand_for_tensors_have_their_shape_again_where_it_counts() -> None:
    """As of F.cross_entropy(x, torch.zeros(M, dtype=torch.long)), whose labels are the number 0."""
    nodes = (
        node("is_label", "ne.Scalar", (0, -100), ("M",)).model_copy(update={"dtype": "bool"}),
        node("labels", "where.self", ("is_label", 0, 1), ("M",)).model_copy(update={"dtype": "int64"}),
        node("column", "unsqueeze.default", ("labels", 1), ("M", "1")).model_copy(update={"dtype": "int64"}),
        node("y", "gather.default", ("x", 1, "column"), ("M", "1")),
    )
    source = text(graph({"x": ("M", "N")}, nodes, ("y",)), 3)
    assert "torch.ops" not in source
    assert "a defect" not in source
