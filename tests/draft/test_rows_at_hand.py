"""What a kernel of rows has at hand is not read again, and what it comes to is the same in NumPy."""

import re

import numpy as np
import pytest

from pytorch_to_triton.schema.graph import Graph

from ..convert.draft.graphs import graph, node, text
from .test_random_programs import disagreements

ROWS, BIASED = ("B", "M", "N"), ("M", "N")


def gradient(of: tuple[str, ...], *more: tuple[str, list[int], tuple[str, ...]]) -> Graph:
    """The gradient of a softmax, and sums of it, or of its product with what a factor varies along."""
    nodes = [
        node("p", "_softmax.default", ("x", -1, False), ROWS),
        node("g", "_softmax_backward_data.default", ("grad", "p", -1, None), ROWS),
        node("t", "mul.Tensor", ("g", "w"), ROWS),
    ]
    nodes += [node(name, "sum.dim_IntList", ("t", dims), to) for name, dims, to in more]
    return graph({"x": ROWS, "grad": ROWS, "w": of}, tuple(nodes), ("g", *(name for name, *_ in more)))


def of_a_sum() -> Graph:
    """A bias [M, N] for all of a batch, times a factor, summed for each row."""
    nodes = (
        node("p", "_softmax.default", ("x", -1, False), ROWS),
        node("g", "_softmax_backward_data.default", ("grad", "p", -1, None), ROWS),
        node("b", "sum.dim_IntList", ("g", [0]), BIASED),
        node("t", "mul.Tensor", ("b", "w"), BIASED),
        node("s", "sum.dim_IntList", ("t", [1]), ("M",)),
    )
    return graph({"x": ROWS, "grad": ROWS, "w": BIASED}, nodes, ("g", "s"))


def with_a_sink() -> Graph:
    scores, joined = ("M", "40"), ("M", "41")
    nodes = (
        node("c", "cat.default", (["x", "e"], -1), joined),
        node("p", "_softmax.default", ("c", -1, False), joined),
        node("y", "slice.Tensor", ("p", 1, 0, 40), scores),
    )
    return graph({"x": scores, "e": ("M", "1")}, nodes, ("y",))


def in_both_directions() -> Graph:
    nodes = (
        node("down", "_softmax.default", ("x", 1, False), ROWS),
        node("along", "_softmax.default", ("x", 2, False), ROWS),
    )
    return graph({"x": ROWS}, nodes, ("down", "along"))


def saved_beside_a_total() -> Graph:
    nodes = (
        node("n", "logsumexp.default", ("x", [-1], True), ("M", "1")),
        node("d", "sub.Tensor", ("x", "n"), BIASED),
        node("t", "mul.Tensor", ("d", "w"), BIASED),
        node("s", "sum.dim_IntList", ("t", [1]), ("M",)),
        node("loss", "mean.default", ("s",), ()),
    )
    return graph({"x": BIASED, "w": BIASED}, nodes, ("n", "loss"))


def summed_from_both_ends() -> Graph:
    nodes = (
        node("down", "cumsum.default", ("x", 1), BIASED),
        node("turned", "flip.default", ("x", [1]), BIASED),
        node("up", "cumsum.default", ("turned", 1), BIASED),
        node("back", "flip.default", ("up", [1]), BIASED),
        node("s", "add.Tensor", ("down", "back"), BIASED),
    )
    return graph({"x": BIASED}, nodes, ("s",))


CASES = {
    "a sum over all": (gradient(("N",), ("s", [0, 1, 2], ())), {"t", "g"}),
    "a sum for each row of a batch": (gradient(("N",), ("s", [0, 2], ("M",))), {"t", "g"}),
    "sums across rows of groups": (gradient(("N",), ("s", [0], BIASED)), {"t", "g"}),
    "a sum of a sum": (of_a_sum(), {"b", "g"}),
    "a sink": (with_a_sink(), {"c", "p"}),
    "rows and columns": (in_both_directions(), {"down", "along"}),
    "a total": (saved_beside_a_total(), {"n", "s"}),
    "running sums from both ends": (summed_from_both_ends(), {"turned"}),
}
"""Graphs, and the values that no kernel may load."""


@pytest.mark.parametrize("what", CASES)
def test_every_way_to_compute_it_agrees_with_its_steps(what: str) -> None:
    traced, _ = CASES[what]
    rng = np.random.default_rng(0)
    given = {i.name: rng.standard_normal(i.shape.traced) for i in traced.inputs}
    assert not list(disagreements(traced, given))


@pytest.mark.parametrize("what", CASES)
def test_no_kernel_loads_what_another_could_have_gone_on_with(what: str) -> None:
    traced, at_hand = CASES[what]
    loaded = set(re.findall(r"tl\.load\(\s*\(?\s*(\w+)_ptr", text(traced, 2)))
    assert loaded.isdisjoint(at_hand), loaded & at_hand


def test_a_sink_takes_no_lane_of_its_scores() -> None:
    source = text(with_a_sink(), 2)
    assert source.count("@triton.jit") == 1
    assert "col < 40" in source
