"""What computes the same of different tensors is one kernel, launched for each."""

import ast

from pytorch_to_triton.schema.graph import Graph

from .graphs import graph, node
from .test_literal_sizes import text


def launched(source: str) -> list[tuple[str, str]]:
    """Each launch's kernel, and the first tensor that it is given."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    found = [(c.func.value, c.args[0]) for c in calls if isinstance(c.func, ast.Subscript)]
    return [(k.id, a.id) for k, a in found if isinstance(k, ast.Name) and isinstance(a, ast.Name)]


def two_softmaxes(first: tuple[str, ...], second: tuple[str, ...], dim: int = -1) -> Graph:
    nodes = (node("s", "softmax.int", ("x", -1), first), node("t", "softmax.int", ("y", dim), second))
    return graph({"x": first, "y": second}, nodes, ("s", "t"))


def test_the_same_of_two_tensors_is_one_kernel_launched_twice() -> None:
    for stage in (1, 2, 3):
        source = text(two_softmaxes(("M", "100"), ("M", "100")), stage)
        assert source.count("@triton.jit") == 1
        assert launched(source) == [("f_out_kernel", "x"), ("f_out_kernel", "y")]
        assert '"""Compute out (and 1 more alike)' in source


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
