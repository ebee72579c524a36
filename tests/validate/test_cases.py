"""The plan of cases: what has a case of its own, what is left out, and that nothing is dropped silently."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import Case, ConstantArgument, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.sizes import middle_size, nearby
from pytorch_to_triton.validate.cases import CasePlan

from .plans import LIMIT, case_for, names, plan_cases, planned, points, reasons

DIMS: dict[str, object] = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


# Values of constants


def test_declared_values_meet_each_other_the_corners_and_the_conditions_of_tensors() -> None:
    inputs: dict[str, object] = {"x": "float32|float16[M, N]", "cap": "30.0|0.0", "mode": "silu|a, b|None"}
    plan = planned(inputs, {"M": [1, 7], "N": [64, 1000]})
    base = "M=7 N=64"
    assert set(names(plan, "value")) >= {
        *(f"{base} {mode}" for mode in ("mode number 2", "mode None", "cap 0.0")),
        *(f"{base} cap 0.0, {mode}" for mode in ("mode number 2", "mode None")),
        *(f"{corner} {value}" for corner in ("M=1 N=64", "M=7 N=1000") for value in ("cap 0.0", "mode None")),
    }
    assert not names(plan, "option")
    assert not any("constant" in skip.why for skip in plan.skipped)
    met = [case.label.split(", ") for case in plan.cases]
    for pair in product(("cap 0.0", "mode None"), ("float16", "x transposed", "nan in x", "negative")):
        assert any(set(pair) <= set(label) for label in met), pair
    declaration = parse_declaration(inputs, {"M": [1, 7], "N": [64, 1000]})
    case = case_for(declaration, "M=3 N=5 cap 0.0, mode number 2, x transposed")
    assert [c.value for c in case.arguments if isinstance(c, ConstantArgument)] == [0.0, "a, b"]


# Sizes


def test_declared_sizes_vary_one_at_a_time_from_the_middle_with_two_corners() -> None:
    plan = planned({"x": "float32[M, N]"}, DIMS)
    assert names(plan, "declared") == [
        "M=7 N=64",
        "M=1 N=64",
        "M=256 N=64",
        "M=7 N=1",
        "M=7 N=1000",
        "M=7 N=4096",
        "M=1 N=1",
        "M=256 N=4096",
    ]


def test_a_declared_size_that_the_middle_excludes_runs_with_the_nearest_sizes_that_allow_it() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [4, 8, 16], "N": [4, 8, 16]}, "M == N")
    assert names(plan, "declared") == ["M=8 N=8", "M=4 N=4", "M=16 N=16"]
    assert reasons(plan)["M=4 N=8"] == "requires M == N"


def test_a_middle_that_requirements_exclude_is_replaced_by_its_nearest_neighbour() -> None:
    plan = planned({"x": "float32[M, N]"}, DIMS, "N >= 1000")
    assert names(plan)[0] == "M=7 N=1000"
    assert reasons(plan)["M=7 N=64"] == "requires N >= 1000"


def test_one_case_has_all_sizes_alike_unless_a_declared_one_does() -> None:
    x: dict[str, object] = {"x": "float32[M, N]"}
    assert {"M": 21, "N": 21} in points(planned(x, {"M": [1, 4, 16], "N": [8, 20, 64]}), "odd")
    wide = planned(x, {"M": [2], "N": [2**17]})
    assert max(point["M"] for point in points(wide, "odd") if point["M"] == point["N"]) == 1024
    declared = points(planned(x, {"M": [8], "N": [4, 8, 16]}), "odd")
    assert not any(point["M"] == point["N"] for point in declared)


def test_each_dim_is_empty_once_and_all_sizes_are_odd_and_different_once() -> None:
    plan = planned({"x": "float32[M, N, K]"}, {"M": [8], "N": [8], "K": [16]})
    assert names(plan, "empty") == ["M=0 N=8 K=16", "M=8 N=0 K=16", "M=8 N=8 K=0"]
    assert names(plan, "odd")[0] == "M=9 N=11 K=21"


def test_what_a_requirement_excludes_is_listed_with_it() -> None:
    plan = planned({"x": "float32[M, N]"}, DIMS, "N % 16 == 0")
    excluded = ["M=7 N=1", "M=7 N=1000", "M=1 N=1"]
    assert {name: reasons(plan)[name] for name in excluded} == dict.fromkeys(excluded, "requires N % 16 == 0")


def test_sizes_that_cannot_be_drawn_are_listed_with_the_reason() -> None:
    plan = planned({"target": "int64[M] in 0..N"}, {"M": [8], "N": [64]})
    assert "0..N is 0..0 at M=8 N=0" in reasons(plan)["M=8 N=0"]
    plan = planned({"x": "float32[M - 4]"}, {"M": [8]})
    assert reasons(plan)["M=0"] == "the size M - 4 is -4 at M=0."
    assert all(case.dims["M"] >= 4 for case in plan.cases)


# The limit


def test_sizes_that_are_all_over_the_limit_are_halved_within_the_requirements() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [4096], "N": [4096]}, "N % 256 == 0", limit=1_000_000)
    assert names(plan, "reduced") == ["M=256 N=512", "M=128 N=4096"]
    assert reasons(plan)["M=4096 N=512"] == "2,097,152 elements are over this run's limit of 1,000,000"


def test_sizes_over_the_limit_are_listed_and_declared_ones_kept_with_smaller_others() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [2, 256], "N": [64, 4096]}, limit=20_000)
    assert reasons(plan)["M=256 N=4096"] == "1,048,576 elements are over this run's limit of 20,000"
    assert "M=2 N=4096" in names(plan, "declared")
    assert "M=256 N=64" in names(plan, "declared")


def test_a_middle_is_halved_rather_than_replaced_by_sizes_of_one() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [1, 65536], "N": [1, 65536]}, limit=1_000_000)
    assert names(plan)[0] == "M=256 N=512"
    assert "M=65536 N=8" in names(plan, "reduced")


def test_a_declared_size_that_no_case_has_for_being_too_large_is_listed_as_such() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [1, 64], "N": [16, 10**6]}, limit=20_000)
    [untried] = [skip for skip in plan.skipped if skip.declared]
    assert untried.what == "N=1000000"
    assert untried.why == "too large for this run: 1,000,000 elements are over this run's limit of 20,000"
    allowed = planned({"x": "float32[N]"}, {"N": [16, 17]}, "N % 2 == 0", limit=20_000)
    assert not any(skip.declared for skip in allowed.skipped)


def test_a_declared_size_that_fits_with_smaller_others_is_tried() -> None:
    plan = planned({"x": "float32[M, N]"}, {"M": [1, 256], "N": [64, 4096]}, limit=20_000)
    assert "M=256 N=4096" in reasons(plan)
    assert not any(skip.declared for skip in plan.skipped)


# Mixtures of dtypes


def mixtures(plan: CasePlan) -> list[tuple[str, dict[str, str]]]:
    return [(case.label, case.dtypes) for case in plan.cases if case.group == "mixed"]


def test_each_tensor_is_the_only_short_one_in_turn_and_the_last_the_only_long_one() -> None:
    claim = "bfloat16|float32"
    inputs: dict[str, object] = {"x": f"{claim}[N]", "w": f"{claim}[N]", "b": f"{claim}[N]"}
    long, short = "float32", "bfloat16"
    assert mixtures(planned(inputs, {"N": [4, 8]})) == [
        ("only x bfloat16", {"x": short, "w": long, "b": long}),
        ("only w bfloat16", {"x": long, "w": short, "b": long}),
        ("only b bfloat16", {"x": long, "w": long, "b": short}),
        ("only b float32 among bfloat16", {"x": short, "w": short, "b": long}),
    ]
    two = mixtures(planned({name: inputs[name] for name in ("x", "w")}, {"N": [4, 8]}))
    assert [label for label, _ in two] == ["only x bfloat16", "only w bfloat16"]


def test_each_short_dtype_is_tried_among_long_ones_and_all_mixtures_where_that_is_asked() -> None:
    claim, dims = "float32|bfloat16|float16", {"N": (4, 8)}
    declaration = parse_declaration({"x": f"{claim}[N]", "w": f"{claim}[N]"}, dims, ())
    plan = plan_cases(declaration)
    pairs = set(permutations(claim.split("|"), 2))
    with_long = {(x, w) for x, w in pairs if "float32" in (x, w)}
    assert {(dtypes["x"], dtypes["w"]) for _, dtypes in mixtures(plan)} == with_long
    assert "mixtures of bfloat16 and float16 alone" in reasons(plan)
    tried = mixtures(plan_cases(declaration, all_mixtures=True))
    assert {(dtypes["x"], dtypes["w"]) for _, dtypes in tried} == pairs
    name = "N=8 only w float16 among bfloat16"
    assert case_for(declaration, name).name == name


@pytest.mark.parametrize(
    "inputs",
    [
        {"x": "float32|bfloat16[N]"},
        {"x": "float32|bfloat16[N]", "w": "float32[N]"},
        {"x": "float16|bfloat16[N]", "w": "float16|bfloat16[N]"},
        {"i": "int32|int64[N]", "j": "int32|int64[N]"},
    ],
    ids=["one tensor", "claims of their own", "dtypes of one width", "integers"],
)
def test_there_is_nothing_to_mix(inputs: dict[str, object]) -> None:
    assert mixtures(planned(inputs, {"N": [4, 8]})) == []


# Offsets past 2^31


def test_large_strides_are_declared_where_the_sizes_of_a_tensor_reach_them() -> None:
    inputs: dict[str, object] = {"table": "float32[V, D]", "x": "float32[M, D]"}
    dims: dict[str, object] = {"V": [8, 2**26], "M": [4, 9], "D": [4, 64]}
    plan = planned(inputs, dims)
    declared = {case.label: case.declared for case in plan.cases if case.group == "large_stride"}
    assert declared == {"table rows far apart": True, "x rows far apart": False}
    bounded = planned(inputs, dims, "V * D <= 2147483648")
    assert not any(case.declared for case in bounded.cases)


def test_a_fixed_shape_over_the_limit_leaves_an_empty_plan_that_says_why() -> None:
    plan = planned({"x": "float32[2000]"}, {}, limit=1000)
    assert plan.cases == ()
    assert reasons(plan) == {"base": "2,000 elements are over this run's limit of 1,000"}


# Repeats


def test_the_middle_case_is_called_again_with_other_values_and_with_ones_alike_at_a_glance() -> None:
    plan = planned({"x": "float32[M, N]"}, DIMS)
    first, alike = (case for case in plan.cases if case.again_after)
    assert (first.name, first.again_after) == ("M=7 N=64 called again", "M=7 N=64")
    assert (alike.name, alike.again_after) == (
        "M=7 N=64 same corners, called again",
        "M=7 N=64 same corners",
    )
    for again in (first, alike):
        before = plan.cases[plan.cases.index(again) - 1]
        assert again.again_after == before.name
        assert again.arguments == before.arguments


def test_a_target_without_tensors_of_ours_is_not_called_again() -> None:
    assert names(planned({}, {"M": [8]}), "repeat") == []
    assert names(planned({"eps": 1.0}, {}), "repeat") == []


# Declarations without dimensions, tensors or inputs


def test_a_target_that_generates_its_own_inputs_varies_in_sizes_only() -> None:
    plan = planned({}, {"M": [8]})
    assert names(plan) == ["M=8", "M=0", "M=9"]
    assert all(case.arguments == () for case in plan.cases)
    assert reasons(plan) == {"layouts and special values": "the target generates its own inputs"}


def test_constants_alone_run_once() -> None:
    plan = planned({"keep": True, "count": 3}, {})
    assert names(plan) == ["base"]
    assert plan.skipped == ()


# Points


@pytest.mark.parametrize(
    ("sizes", "middle"),
    [([1, 7, 256], 7), ([1, 64, 1000, 4096], 64), ([4096, 1], 4096), ([0, 1, 8], 8), ([1], 1), ([0, 1], 1)],
)
def test_the_middle_size_exercises_more_than_one_element(sizes: list[int], middle: int) -> None:
    assert middle_size(sizes) == middle


def test_neighbours_change_few_sizes_by_little_first() -> None:
    points = [tuple(point.values()) for point in nearby({"M": 4, "N": 4}, {"M": [1, 4, 5], "N": [4, 9]})]
    assert points == [(4, 4), (5, 4), (1, 4), (4, 9), (5, 9), (1, 9)]


# Properties

REQUIREMENTS = ("M <= N", "N % 4 == 0", "K != 7", "M * K < 500", "M + N + K > 3", "N == 1 or M > 2")
SHAPES = ("M, N", "N", "M, N, K", "M + N", "N // 2, K", "")
INPUTS = ("float32[{}]", "float32|bfloat16[{}]", "int64[{}] in 0..N + 1", "float16[{}] in 0..1", "bool[{}]")
EXAMPLES = (6, pytest.param(25, marks=pytest.mark.corpora))
"""How many declarations are tried."""
declared_sizes = st.lists(st.integers(0, 40) | st.sampled_from((64, 128)), min_size=1, max_size=4)


@st.composite
def declarations(draw: st.DrawFn) -> Declaration | None:
    """A declaration over M, N and K; None when its requirements contradict its sizes."""
    inputs: dict[str, object] = {"base": "float32[M, N, K]"}
    for index in range(draw(st.integers(0, 2))):
        inputs[f"x{index}"] = draw(st.sampled_from(INPUTS)).format(draw(st.sampled_from(SHAPES)))
    dims: dict[str, object] = {name: draw(declared_sizes) for name in ("M", "N", "K")}
    try:
        return parse_declaration(inputs, dims, draw(st.lists(st.sampled_from(REQUIREMENTS), max_size=2)))
    except BadDeclaration:
        return None


@pytest.mark.parametrize("examples", EXAMPLES)
def test_every_plan_keeps_its_promises(examples: int) -> None:
    limits, seeds = st.sampled_from((500, 20_000, LIMIT)), st.none() | st.integers(0, 5)
    tried = settings(max_examples=examples)(given(declarations(), limits, seeds)(keeps_its_promises))
    tried()


def keeps_its_promises(declaration: Declaration | None, limit: int, seed: int | None) -> None:
    if declaration is None:
        return
    plan = plan_cases(declaration, limit=limit, seed=seed)
    assert len(set(names(plan))) == len(plan.cases)
    assert not set(names(plan)) & set(reasons(plan))
    for case in plan.cases:
        assert declaration.violated(case.dims) is None
        assert sum(tensor.elements for tensor in tensors_in(case.arguments)) <= limit
        assert Case.model_validate_json(case.model_dump_json()) == case
    if plan.cases:
        assert case_for(declaration, plan.cases[-1].name, limit=limit) == plan.cases[-1]
    for name, size in ((name, size) for name, sizes in declaration.dims.items() for size in sizes):
        run = any(case.dims[name] == size for case in plan.cases if not case.label)
        listed = any(f"{name}={size}" in what.split() for what in reasons(plan))
        assert run or listed


@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_plan_is_empty_only_where_no_declared_sizes_can_be_drawn(examples: int) -> None:
    settings(max_examples=examples)(given(declarations())(is_empty_only_where_nothing_can_be_drawn))()


def is_empty_only_where_nothing_can_be_drawn(declaration: Declaration | None) -> None:
    if declaration is None or plan_cases(declaration).cases:
        return
    for sizes in product(*declaration.dims.values()):
        dims = dict(zip(declaration.dims, sizes, strict=True))
        elements = sum(tensor.elements for tensor in tensors_in(declaration.arguments(dims)))
        assert declaration.violated(dims) or elements > LIMIT
