"""What takes long at large sizes is drafted where those at hand are small, and `run` refuses larger ones."""

from collections.abc import Mapping, Sequence

import pytest

from pytorch_to_triton.schema.graph import Graph

from .graphs import drafted, graph, node

Declared = Mapping[str, Sequence[int]]
SCATTER = graph(
    {"x": ("M", "N"), "w": ("N",), "v": ("M",)},
    (
        node("i", "argmax.default", ("x", 1), ("M",), "int64"),
        node("y", "index_put.default", ("w", ["i"], "v", True), ("N",)),
    ),
    ("y",),
)
MEDIAN = graph({"x": ("M", "N")}, (node("y", "median.default", ("x",), ()),), ("y",))
AMONG_FEW = "N <= 64 or M <= 64 or M * N <= 16777216"
RANKED = "M * N <= 16 or M * M * (N * N) <= 16777216"


@pytest.mark.parametrize(
    ("traced", "declared", "timed", "limit"),
    [
        (SCATTER, {"M": [5], "N": [9]}, {"M": 64, "N": 10**6}, AMONG_FEW),
        (SCATTER, {"M": [10**6], "N": [1, 64]}, None, AMONG_FEW),
        (SCATTER, {"M": [4096], "N": [4096]}, None, AMONG_FEW),
        (MEDIAN, {"M": [1, 16], "N": [1, 256]}, None, RANKED),
    ],
)
def test_sizes_at_hand_that_are_small_enough_become_limits(
    traced: Graph, declared: Declared, timed: Mapping[str, int] | None, limit: str
) -> None:
    for stage in (1, 3):
        made = drafted(traced, stage, declared, timed)
        assert made.calls == ()
        assert limit in made.file.limits
        assert f"assert {limit}," in made.text


def test_one_size_at_hand_that_is_too_large_leaves_the_call_to_pytorch() -> None:
    made = drafted(SCATTER, 3, {"M": [5], "N": [9]}, {"M": 4097, "N": 4097})
    assert made.calls == ("aten.index_put.default",)
    assert made.left == ("`aten.index_put` (line 1): it scatters",)
    assert not any(" or " in limit for limit in made.file.limits)
