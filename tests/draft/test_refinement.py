"""A fusion does not stop at a view: what stands before it and behind it is over the same axes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.draft.divisors import divisors_of
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.draft.program import Program
from pytorch_to_triton.draft.reading import read_program
from pytorch_to_triton.draft.refinement import with_refined_axes
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.graph import Graph, Node
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..convert.draft.graphs import graph, node, text
from .test_random_programs import disagreements

GATED_NORM = """\
import torch

INPUTS = {name: "bfloat16[T, D]" for name in ("x", "gate", "residual")} | {"weight": "bfloat16[D]"}
DIMS = {"T": [3, 512], "D": [256, 4096]}
REQUIRES = ["D % 4 == 0"]


def gated_norm(x, gate, residual, weight):
    h = x.float() + residual.float()
    gated = h * torch.nn.functional.silu(gate.float())
    T, D = gated.shape
    grouped = gated.view(T, 4, D // 4)
    inv = torch.rsqrt(grouped.pow(2).mean(-1, keepdim=True) + 1e-5)
    y = (grouped * inv).view(T, D) * weight.float()
    return y.to(x.dtype), h.to(x.dtype)
"""


def refined(given: Graph) -> Program:
    return with_refined_axes(read_program(given, frozenset(), PURE))


def sizes_along(program: Program, step: str, dim: int) -> list[str]:
    return [str(a.size) for a in program.steps[step].tensor.dims[dim]]


def viewed(*views: tuple[str, ...]) -> Graph:
    """The largest of each row of several views of relu(x)."""
    nodes = [node("r", "relu.default", ("x",), ("M", "12"))]
    for i, shape in enumerate(views):
        nodes.append(node(f"v{i}", "view.default", ("r", [19, *map(int, shape)]), ("M", *shape)))
        nodes.append(node(f"m{i}", "amax.default", (f"v{i}", [-1], False), ("M", *shape[:-1])))
    return graph({"x": ("M", "12")}, tuple(nodes), tuple(f"m{i}" for i in range(len(views))))


def test_views_that_cut_a_dimension_in_several_ways_share_the_axes_common_to_them() -> None:
    assert sizes_along(refined(viewed(("3", "4"))), "relu", 1) == ["3", "4"]
    assert sizes_along(refined(viewed(("3", "4"), ("6", "2"))), "relu", 1) == ["3", "2", "2"]


def test_of_views_whose_sizes_do_not_go_into_each_other_the_first_cuts() -> None:
    assert sizes_along(refined(viewed(("3", "4"), ("4", "3"))), "relu", 1) == ["3", "4"]


def test_what_nobody_cuts_keeps_its_axes() -> None:
    given = viewed()
    program = read_program(given, frozenset(), PURE)
    assert with_refined_axes(program) == program


def test_no_two_axes_of_a_tensor_become_one() -> None:
    """Distances of all pairs, where rows are looked at in pairs and columns are not."""
    pairs = ("12", "12")
    nodes = (
        node("a", "unsqueeze.default", ("x", 0), ("1", "12")),
        node("b", "unsqueeze.default", ("x", 1), ("12", "1")),
        node("d", "sub.Tensor", ("b", "a"), pairs),
        node("v", "view.default", ("x", [6, 2]), ("6", "2")),
        node("m", "amax.default", ("v", [-1], False), ("6",)),
    )
    program = refined(graph({"x": ("12",)}, nodes, ("d", "m")))
    axes = program.steps["out"].tensor.axes
    assert len(set(axes)) == len(axes)


def test_what_reads_a_librarys_result_does_not_join_a_kernel_that_runs_before() -> None:
    nodes = (
        node("s", "silu.default", ("x",), ("M", "N")),
        node("c", "unknown.default", ("s",), ("M", "N")),
        node("y", "mul.Tensor", ("x", "c"), ("M", "N")),
    )
    source = text(graph({"x": ("M", "N")}, nodes, ("s", "y")), 2)
    launches = [
        source.rindex(line) for line in ("f_out_kernel[", "torch.ops.aten.unknown(out)", "f_out_2_kernel[")
    ]
    assert launches == sorted(launches)


def test_outputs_over_the_same_rows_are_stored_by_the_kernel_that_reads_them() -> None:
    nodes = (
        node("s", "softmax.int", ("x", -1), ("M", "100")),
        node("t", "tanh.default", ("x",), ("M", "100")),
        node("n", "amax.default", ("x", [-1], False), ("M",)),
    )
    source = text(graph({"x": ("M", "100")}, nodes, ("s", "t", "n")), 2)
    assert source.count('"""Compute out, out_2, out_3; a program holds whole rows in registers."""') == 1
    assert source.count("_kernel[") == 1


@pytest.mark.anyio
async def test_a_norm_of_groups_is_one_kernel_with_all_around_it_forward_and_one_for_the_rows_backward(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "gated_norm.py"
    path.write_text(GATED_NORM, encoding="utf-8")
    request = ConversionRequest(target=Target(path=path, name="gated_norm"), backward=True)
    origin = (await resolve(worker, request, interpreter)).convertible()
    kernels = {k.name: "\n".join(k.lines) for k in origin.drafted(2).kernels}
    forward = [k for k in kernels.values() if "out_2_ptr" in k]
    assert [k for n, k in kernels.items() if "backward" not in n] == forward
    for source in kernels.values():
        divisions = re.findall(r"(\w+)(?:\[[^]]*\])? (?:%|//) ", source)
        assert set(divisions) <= {"row", "pid", "n_col_blocks", "512", "D"}, "none of an element's own index"
    saved = origin.drafted(2).text.partition('"""Saves ')[2].partition(" for")[0]
    assert saved == "x, gate, residual, weight, inv"


def test_a_dim_is_divided_by_what_the_traces_guards_say_together() -> None:
    guards = ("N % 4 == 0", "N % 6 == 0", "M % 32 == 0", "K // (K // 8) == 8")
    given = viewed().model_copy(update={"guards": guards})
    assert divisors_of(given) == {"N": 12, "M": 32}


def in_groups(shape: tuple[str, str], *guards: str) -> Graph:
    """x [M, D] over the mean of each of its groups, which are the last dimension of a view, times w [D]."""
    group = ("M", *shape)
    nodes = (
        node("v", "view.default", ("x", [0, 0, 0]), group),
        node("m", "mean.dim", ("v", [-1], True), ("M", shape[0], "1")),
        node("q", "div.Tensor", ("v", "m"), group),
        node("f", "view.default", ("q", [0, 0]), ("M", f"({shape[0]})*({shape[1]})")),
        node("y", "mul.Tensor", ("f", "w"), ("M", "D")),
    )
    given = graph({"x": ("M", "D"), "w": ("D",), "of_size": ("G",)}, nodes, ("y",))
    return given.model_copy(update={"guards": guards})


GROUPED = [
    in_groups(("G", "D//G"), "D % G == 0"),
    in_groups(("D//G", "D//(D//G)"), "D % G == 0"),
    in_groups(("2*G", "D//(2*G)"), "D % (2 * G) == 0"),
    in_groups(("D//(2*G)", "2*G"), "D % (2 * G) == 0"),
]


@pytest.mark.parametrize("given", GROUPED)
def test_groups_of_a_declared_size_are_axes_of_all_that_is_over_them(given: Graph) -> None:
    kernel = text(given, 2).split("@triton.jit")[1].split("\n\n\n")[0]
    assert set(re.findall(r"(\S+) (?:%|//) ", kernel)) <= {"row", "G", "n_cols", "(D"}, "no element's index"
    assert kernel.count("tl.load(x_ptr") == 1


@pytest.mark.parametrize("given", GROUPED)
def test_groups_of_a_declared_size_are_computed_as_step_by_step(given: Graph) -> None:
    rng = np.random.default_rng(0)
    assert not list(disagreements(given, {"x": rng.random((19, 24)) + 1, "w": rng.random(24)}))


def test_a_dim_is_divided_by_other_dims_where_they_alone_cut_its_shapes() -> None:
    by_group, by_pairs = in_groups(("G", "D//G"), "D % G == 0", "D % 3 == 0"), GROUPED[2]
    assert divisors_of(by_group) == {"D": size("G")}
    assert divisors_of(by_pairs) == {"D": size("2*G")}
    assert divisors_of(in_groups(("4", "D//4"), "D % G == 0", "D % 4 == 0")) == {"D": 4}
    assert divisors_of(in_groups(("M", "D//M"), "D % G == 0", "D % M == 0")) == {"D": size("M")}
    assert divisors_of(in_groups(("G", "D//G"), "D % (D // G) == 0", "D % (G % M) == 0")) == {}


def every_second(x: str, start: int, shape: tuple[str, ...]) -> Node:
    return node(f"{x}_{start}", "slice.Tensor", (x, len(shape) - 1, start, 2**62, 2), shape)


def one_kernel(given: Graph, **arrays: np.ndarray[Any, Any]) -> str:
    """The draft, which is one kernel, and computes what the steps do."""
    source = text(given, 2)
    assert source.count("_kernel[") == 1
    assert not list(disagreements(given, arrays))
    return source


def test_sums_across_rows_are_taken_by_the_kernel_that_stores_neighbours_in_turn() -> None:
    """The gradients of pairs, as of a rotary embedding's neighbours, and of what all rows share."""
    rows, half = ("M", "24"), ("M", "12")
    nodes = (
        every_second("x", 0, half),
        every_second("x", 1, half),
        node("n", "neg.default", ("x_1",), half),
        node("a", "slice_backward.default", ("n", [11, 24], 1, 0, 2**62, 2), rows),
        node("b", "slice_backward.default", ("x_0", [11, 24], 1, 1, 2**62, 2), rows),
        node("y", "add.Tensor", ("a", "b"), rows),
        node("p", "mul.Tensor", ("x_0", "x_1"), half),
        node("s", "sum.dim_IntList", ("p", [0], False), ("12",)),
    )
    given = graph({"x": rows}, nodes, ("y", "s"))
    source = text(given, 2)
    assert "Compute out, partial_out_2; a program takes one chunk." in source
    assert source.count("_kernel[") == 2
    assert not list(disagreements(given, {"x": np.random.default_rng(0).random((11, 24))}))


def test_rows_are_reduced_in_the_kernel_that_goes_on_with_two_elements_of_each_place() -> None:
    """Two scaled numbers side by side become one, as two in a byte do."""
    rows, half = ("M", "G", "8"), ("M", "4*G")
    nodes = (
        node("v", "view.default", ("x", [0, 0, 8]), rows),
        node("a", "amax.default", ("v", [-1], True), ("M", "G", "1")),
        node("q", "div.Tensor", ("v", "a"), rows),
        node("f", "view.default", ("q", [0, 0]), ("M", "8*G")),
        every_second("f", 0, half),
        every_second("f", 1, half),
        node("y", "sub.Tensor", ("f_0", "f_1"), half),
    )
    given = graph({"x": ("M", "8*G"), "g": ("G",)}, nodes, ("y",))
    one_kernel(given, x=np.random.default_rng(0).random((11, 48)) + 1, g=np.zeros(6))


def test_what_is_joined_of_a_row_s_best_and_next_best_and_summed_is_one_kernel() -> None:
    """Weights of the two best experts, one of which is found among what the other leaves."""
    nodes = (
        node("t", "topk.default", ("x", 2), ()).model_copy(update={"shape": None}),
        node("v", "", ("t", 0), ("M", "2")).model_copy(update={"op": "getitem"}),
        node("s", "sum.dim_IntList", ("v", [-1], True), ("M", "1")),
        node("y", "div.Tensor", ("v", "s"), ("M", "2")),
    )
    given = graph({"x": ("M", "N")}, nodes, ("y",))
    source = one_kernel(given, x=np.random.default_rng(0).random((11, 13)) + 1)
    assert "tl.where(i" not in source, "nothing chooses between the two"


def test_outputs_that_lie_in_another_order_in_memory_are_stored_by_kernels_of_their_own() -> None:
    nodes = (
        node("u", "mul.Tensor", ("x", 2), ("M", "N")),
        node("t", "permute.default", ("u", [1, 0]), ("N", "M")),
        node("c", "clone.default", ("t",), ("N", "M")),
        node("e", "exp.default", ("x",), ("M", "N")),
    )
    source = text(graph({"x": ("M", "N")}, nodes, ("c", "e")), 2)
    assert source.count("@triton.jit") == 2
