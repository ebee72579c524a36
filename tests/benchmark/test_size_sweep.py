"""Which sizes are timed: those that were named, else a sweep from the declared ones upwards."""

import pytest

from pytorch_to_triton.benchmark.plan import sweep
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_declaration, parse_points

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 16], "N": [8, 1024]}


def test_sizes_that_are_named_vary_one_at_a_time_from_the_largest() -> None:
    options = Options(dims={"M": [64], "N": [256, 4096]})
    points = sweep(parse_declaration(INPUTS, DIMS, (), options), options)
    assert points == ({"M": 64, "N": 256}, {"M": 64, "N": 4096})


def test_sizes_that_belong_together_are_timed_together_with_the_largest_of_other_dims() -> None:
    points = parse_points(["M=4096,N=32768", "M=64, N=64"])
    options = NO_OPTIONS.at(points)
    timed = sweep(parse_declaration(INPUTS, DIMS, (), options), options, points)
    assert timed == ({"M": 64, "N": 64}, {"M": 4096, "N": 32768})
    points = parse_points(["N=64"])
    options = NO_OPTIONS.at(points)
    assert sweep(parse_declaration(INPUTS, DIMS, (), options), options, points) == ({"M": 16, "N": 64},)


def test_without_names_sizes_grow_from_the_largest_declared_ones_past_any_cache() -> None:
    points = sweep(parse_declaration(INPUTS, DIMS), NO_OPTIONS)
    assert points[0] == {"M": 16, "N": 1024}
    assert len(points) == 4
    assert 4 * points[-1]["M"] * points[-1]["N"] >= 2**28
    assert sweep(parse_declaration({"x": "float32[8]"}, {}), NO_OPTIONS) == ({},)


def test_names_that_meet_no_requirement_are_refused() -> None:
    declaration = parse_declaration(INPUTS, DIMS, ["N % 16 == 0"])
    options = Options(dims={"M": [16]})
    declared = declaration.model_copy(update={"dims": {"M": (16,), "N": (7,)}})
    with pytest.raises(BadInput, match="N % 16 == 0"):
        sweep(declared, options)
