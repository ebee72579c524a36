"""The plan of cases: which sizes are run, which are left out, and that nothing is dropped silently."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.sizes import middle_size, nearby
from pytorch_to_triton.validate.cases import CasePlan, case_for, plan_cases

from .plans import LIMIT, case_named, names, plan_of, points, reasons, tensor

DIMS: dict[str, object] = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


# Sizes


def test_declared_sizes_vary_one_at_a_time_from_the_middle_with_two_corners() -> None:
    plan = plan_of({"x": "float32[M, N]"}, DIMS)
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


def test_odd_one_element_and_empty_sizes_join_the_declared_ones() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [8], "N": [64]})
    assert names(plan, "odd") == ["M=9 N=65", "M=65 N=65", "M=9 N=64", "M=13 N=64", "M=8 N=65", "M=8 N=13"]
    assert names(plan, "one") == ["M=1 N=64", "M=8 N=1"]
    assert names(plan, "empty") == ["M=0 N=64", "M=8 N=0"]
    assert plan.skipped == ()


def test_powers_of_two_and_their_neighbours_are_tried_near_the_middle_and_near_the_largest_size() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [5], "N": [1, 70, 1000]})
    along_m = ["M=3 N=70", "M=4 N=70"]
    along_n = ["M=5 N=63", "M=5 N=64", "M=5 N=65", "M=5 N=1023", "M=5 N=1024", "M=5 N=1025"]
    assert names(plan, "power_of_two") == [*along_m, *along_n]


@pytest.mark.parametrize(("sizes", "tried"), [([1], [2]), ([0], [2, 3]), ([3], [2]), ([6], [3, 4, 5])])
def test_a_power_of_two_is_two_at_least_and_the_lower_of_two(sizes: list[int], tried: list[int]) -> None:
    plan = plan_of({"x": "float32[M]"}, {"M": sizes})
    assert [case.dims["M"] for case in plan.cases if case.group == "power_of_two"] == tried


def test_a_batch_is_tried_with_one_row_an_odd_number_and_many() -> None:
    plan = plan_of({"x": "float32[B, N]", "w": "float32[N]"}, {"B": [2, 4], "N": [8]})
    assert names(plan, "batch") == ["B=257 N=8"]
    assert {"B=1 N=8", "B=3 N=8", "B=13 N=8"} <= set(names(plan))
    assert names(plan_of({"x": "float32[B, N]"}, {"B": [4, 300], "N": [8]}), "batch") == []
    assert names(plan_of({"x": "float32[N]"}, {"N": [8]}), "batch") == []


def test_a_generated_size_that_is_declared_already_is_run_once() -> None:
    plan = plan_of({"x": "float32[M]"}, {"M": [0, 1, 8, 9, 13]})
    assert [case.dims["M"] for case in plan.cases if not case.label] == [
        8,
        0,
        1,
        9,
        13,
        15,
        7,
        16,
        17,
        33,
    ]


def test_an_odd_size_above_the_largest_declared_one_is_tried_too() -> None:
    plan = plan_of({"x": "float32[M]"}, {"M": [64, 2048]})
    assert "M=2049" in names(plan, "odd")


def test_what_a_requirement_excludes_is_listed_with_it() -> None:
    plan = plan_of({"x": "float32[M, N]"}, DIMS, "N % 16 == 0")
    excluded = ["M=7 N=1", "M=7 N=1000", "M=1 N=1", "M=7 N=65", "M=7 N=13"]
    assert {name: reasons(plan)[name] for name in excluded} == dict.fromkeys(excluded, "requires N % 16 == 0")


def test_where_odd_sizes_are_excluded_an_uneven_multiple_is_run() -> None:
    plan = plan_of({"x": "float32[N]"}, {"N": [64, 128]}, "N % 16 == 0")
    assert names(plan, "odd") == ["N=80"]


def test_a_declared_size_that_the_middle_excludes_runs_with_the_nearest_sizes_that_allow_it() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [4, 8, 16], "N": [4, 8, 16]}, "M == N")
    assert names(plan, "declared") == ["M=8 N=8", "M=4 N=4", "M=16 N=16"]
    assert reasons(plan)["M=4 N=8"] == "requires M == N"


def test_a_middle_that_requirements_exclude_is_replaced_by_its_nearest_neighbour() -> None:
    plan = plan_of({"x": "float32[M, N]"}, DIMS, "N >= 1000")
    assert names(plan)[0] == "M=7 N=1000"
    assert reasons(plan)["M=7 N=64"] == "requires N >= 1000"


def test_an_empty_range_of_integers_is_skipped_with_the_reason() -> None:
    plan = plan_of({"target": "int64[M] in 0..N"}, {"M": [8], "N": [64]})
    assert "0..N is 0..0 at M=8 N=0" in reasons(plan)["M=8 N=0"]
    assert tensor(case_named(plan, "M=8 N=13"), "target").high == 13


def test_a_size_that_turns_negative_is_skipped_with_the_reason() -> None:
    plan = plan_of({"x": "float32[M - 4]"}, {"M": [8]})
    assert reasons(plan)["M=1"] == "the size M - 4 is -3 at M=1."
    assert "M=0" not in names(plan)


def test_one_case_has_all_sizes_odd_and_different() -> None:
    cube: dict[str, object] = {"x": "float32[M, N, K]"}
    plan = plan_of(cube, {"M": [8], "N": [8], "K": [16]})
    assert names(plan, "odd")[0] == "M=9 N=11 K=17"
    assert "M=3 N=5 K=17" in names(plan_of(cube, {"M": [1], "N": [1], "K": [16]}), "odd")


def test_one_case_has_all_sizes_alike_unless_a_declared_one_does() -> None:
    x: dict[str, object] = {"x": "float32[M, N]"}
    assert {"M": 21, "N": 21} in points(plan_of(x, {"M": [1, 4, 16], "N": [8, 20, 64]}), "odd")
    wide = plan_of(x, {"M": [2], "N": [2**17]})
    assert max(point["M"] for point in points(wide, "odd") if point["M"] == point["N"]) == 1024
    declared = points(plan_of(x, {"M": [8], "N": [4, 8, 16]}), "odd")
    assert not any(point["M"] == point["N"] for point in declared)


def test_all_sizes_change_together_within_the_requirements_or_are_listed() -> None:
    x: dict[str, object] = {"x": "float32[M, N]"}
    plan = plan_of(x, {"M": [8], "N": [64]}, "N % 16 == 0")
    assert names(plan, "odd")[:2] == ["M=9 N=80", "M=64 N=64"]
    assert reasons(plan)["M=9 N=65"] == "requires N % 16 == 0"
    below = plan_of(x, {"M": [8], "N": [64]}, "M < N")
    assert reasons(below)["M=65 N=65"] == "requires M < N"
    square = plan_of(x, {"M": [8, 16], "N": [8, 16]}, "M == N")
    assert names(square, "odd")[0] == "M=11 N=11"


def test_each_dimension_goes_past_twice_the_power_of_two_above_its_declared_sizes() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [1, 4, 16], "N": [8, 20, 65]})
    assert names(plan, "beyond") == ["M=33 N=20", "M=4 N=257"]
    assert names(plan_of({"x": "float32[M]"}, {"M": [128]}), "beyond") == ["M=257"]


def test_a_size_beyond_the_declared_ones_keeps_to_requirements_and_to_the_limit() -> None:
    x: dict[str, object] = {"x": "float32[M, N]"}
    sixteens = plan_of(x, {"M": [8], "N": [64, 128]}, "N % 16 == 0")
    assert points(sixteens, "beyond")[-1] == {"M": 8, "N": 320}
    bounded = plan_of(x, {"M": [8], "N": [64]}, "N <= 64")
    assert [point["N"] for point in points(bounded, "beyond")] == [64]
    assert reasons(bounded)["M=8 N=129"] == "requires N <= 64"
    tight = plan_of(x, {"M": [64], "N": [1024]}, limit=80_000)
    assert points(tight, "beyond")[-1] == {"M": 4, "N": 2049}


def test_a_seed_adds_three_random_points_within_the_declared_sizes() -> None:
    inputs: dict[str, object] = {"x": "float32[M, N]"}
    dims: dict[str, object] = {"M": [1, 7, 256], "N": [1, 64, 4096]}
    assert names(plan_of(inputs, dims), "random_sizes") == []
    seen = [point for seed in range(20) for point in points(plan_of(inputs, dims, seed=seed), "random_sizes")]
    assert len(seen) == 60
    assert len({tuple(point.values()) for point in seen}) == 60
    assert all(1 <= point["M"] <= 256 and 1 <= point["N"] <= 4096 for point in seen)
    below = sum(point["N"] < 64 for point in seen)
    assert 20 <= below <= 40, "half of log-uniform sizes up to 4096 are below its root"
    assert plan_of(inputs, dims, seed=3) == plan_of(inputs, dims, seed=3)


def test_random_points_keep_to_requirements_and_to_the_limit() -> None:
    shape: dict[str, object] = {"x": "float32[B, H, S, D]"}
    dims: dict[str, object] = {"B": [1, 2], "H": [4, 8], "S": [128, 512], "D": [64, 128]}
    plan = plan_of(shape, dims, "D % 64 == 0", "S % 128 == 0", "H == 4 * B", seed=1)
    assert len(points(plan, "random_sizes")) == 3
    small = plan_of({"x": "float32[M, N]"}, {"M": [4096], "N": [4096]}, limit=1_000_000, seed=1)
    assert all(point["M"] * point["N"] <= 125_000 for point in points(small, "random_sizes"))
    assert len(points(small, "random_sizes")) == 3


def test_where_no_new_point_is_found_that_is_listed() -> None:
    plan = plan_of({"x": "float32[M]"}, {"M": [1]}, seed=1)
    why = "none of 1,000 tries was both allowed and new"
    assert reasons(plan)["random sizes"] == why
    assert reasons(plan_of({"x": "float32[4]"}, {}, seed=1)) == {}


# The limit


def test_sizes_over_the_limit_are_listed_and_declared_ones_kept_with_smaller_others() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [2, 256], "N": [64, 4096]}, limit=20_000)
    assert reasons(plan)["M=256 N=4096"] == "1,048,576 elements are over this run's limit of 20,000"
    assert "M=2 N=4096" in names(plan, "declared")
    assert "M=256 N=64" in names(plan, "declared")


def test_sizes_that_are_all_over_the_limit_are_halved_within_the_requirements() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [4096], "N": [4096]}, "N % 256 == 0", limit=1_000_000)
    assert names(plan, "reduced") == ["M=256 N=512", "M=128 N=4096"]
    assert names(plan, "odd") == ["M=65 N=768", "M=256 N=256", "M=65 N=256", "M=13 N=256", "M=64 N=768"]
    assert reasons(plan)["M=4096 N=512"] == "2,097,152 elements are over this run's limit of 1,000,000"


def test_a_middle_is_halved_rather_than_replaced_by_sizes_of_one() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [1, 65536], "N": [1, 65536]}, limit=1_000_000)
    assert names(plan)[0] == "M=256 N=512"
    assert "M=65536 N=8" in names(plan, "reduced")


def test_a_declared_size_that_no_case_has_for_being_too_large_is_listed_as_such() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [1, 64], "N": [16, 10**6]}, limit=20_000)
    [untried] = [skip for skip in plan.skipped if skip.declared]
    assert untried.what == "N=1000000"
    assert untried.why == "too large for this run: 1,000,000 elements are over this run's limit of 20,000"
    allowed = plan_of({"x": "float32[N]"}, {"N": [16, 17]}, "N % 2 == 0", limit=20_000)
    assert not any(skip.declared for skip in allowed.skipped)


def test_a_declared_size_that_fits_with_smaller_others_is_tried() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [1, 256], "N": [64, 4096]}, limit=20_000)
    assert "M=256 N=4096" in reasons(plan)
    assert not any(skip.declared for skip in plan.skipped)


# Mixtures of dtypes


def mixtures(plan: CasePlan) -> list[tuple[str, dict[str, str]]]:
    return [(case.label, case.dtypes) for case in plan.cases if case.group == "mixed"]


def test_each_tensor_is_the_only_short_one_in_turn_and_the_last_the_only_long_one() -> None:
    claim = "bfloat16|float32"
    inputs: dict[str, object] = {"x": f"{claim}[N]", "w": f"{claim}[N]", "b": f"{claim}[N]"}
    long, short = "float32", "bfloat16"
    assert mixtures(plan_of(inputs, {"N": [4, 8]})) == [
        ("only x bfloat16", {"x": short, "w": long, "b": long}),
        ("only w bfloat16", {"x": long, "w": short, "b": long}),
        ("only b bfloat16", {"x": long, "w": long, "b": short}),
        ("only b float32 among bfloat16", {"x": short, "w": short, "b": long}),
    ]
    two = mixtures(plan_of({name: inputs[name] for name in ("x", "w")}, {"N": [4, 8]}))
    assert [label for label, _ in two] == ["only x bfloat16", "only w bfloat16"]


def test_each_short_dtype_is_tried_among_long_ones_and_all_mixtures_where_that_is_asked() -> None:
    claim, dims = "float32|bfloat16|float16", {"N": (4, 8)}
    declaration = parse_declaration({"x": f"{claim}[N]", "w": f"{claim}[N]"}, dims, ())
    plan = plan_cases(declaration, limit_elements=LIMIT)
    pairs = set(permutations(claim.split("|"), 2))
    with_long = {(x, w) for x, w in pairs if "float32" in (x, w)}
    assert {(dtypes["x"], dtypes["w"]) for _, dtypes in mixtures(plan)} == with_long
    assert "mixtures of bfloat16 and float16 alone" in reasons(plan)
    tried = mixtures(plan_cases(declaration, limit_elements=LIMIT, all_mixtures=True))
    assert {(dtypes["x"], dtypes["w"]) for _, dtypes in tried} == pairs
    name = "N=8 only w float16 among bfloat16"
    assert case_for(declaration, name, limit_elements=LIMIT).name == name


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
    assert mixtures(plan_of(inputs, {"N": [4, 8]})) == []


# Offsets past 2^31


def test_large_strides_are_declared_where_the_sizes_of_a_tensor_reach_them() -> None:
    inputs: dict[str, object] = {"table": "float32[V, D]", "x": "float32[M, D]"}
    dims: dict[str, object] = {"V": [8, 2**26], "M": [4, 9], "D": [4, 64]}
    plan = plan_of(inputs, dims)
    declared = {case.label: case.declared for case in plan.cases if case.group == "large_stride"}
    assert declared == {"table rows far apart": True, "x rows far apart": False}
    bounded = plan_of(inputs, dims, "V * D <= 2147483648")
    assert not any(case.declared for case in bounded.cases)


def test_a_fixed_shape_over_the_limit_leaves_an_empty_plan_that_says_why() -> None:
    plan = plan_of({"x": "float32[2000]"}, {}, limit=1000)
    assert plan.cases == ()
    assert reasons(plan) == {"base": "2,000 elements are over this run's limit of 1,000"}


# Repeats


def test_the_middle_and_the_largest_declared_case_are_called_again_right_after_their_own_call() -> None:
    plan = plan_of({"x": "float32[M, N]"}, DIMS, limit=100_000)
    assert names(plan, "repeat") == ["M=7 N=64 called again", "M=7 N=4096 called again"]
    for name in names(plan, "repeat"):
        again = case_named(plan, name)
        before = plan.cases[plan.cases.index(again) - 1]
        assert again.again_after == before.name == name.removesuffix(" called again")
        assert again.arguments == before.arguments
    assert all(case.again_after is None for case in plan.cases if case.group != "repeat")


def test_a_target_without_tensors_of_ours_is_not_called_again() -> None:
    assert names(plan_of({}, {"M": [8]}), "repeat") == []
    assert names(plan_of({"eps": 1.0}, {}), "repeat") == []


# How many


def test_a_plan_stays_small() -> None:
    softmax = plan_of(
        {"x": "float32|bfloat16|float16[M, N]"}, {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}
    )
    assert len(softmax.cases) <= 80
    a, b, c = ("float32|bfloat16[M, K]", "float32|bfloat16[K, N]", "float32|bfloat16[N]")
    matmul = plan_of({"a": a, "b": b, "c": c}, {"M": [1, 64, 300], "K": [16, 64, 500], "N": [1, 64, 300]})
    assert len(matmul.cases) <= 95
    many: dict[str, object] = {f"x{index}": "float32[M, N]" for index in range(12)}
    few = len(plan_of({"x0": many["x0"]}, {"M": [8], "N": [64]}).cases)
    each_layout_and_far, non_finite_in_a_second, in_all = 11 * 5, 2, 2
    plan = plan_of(many, {"M": [8], "N": [64]})
    assert len(plan.cases) == few + each_layout_and_far + non_finite_in_a_second + in_all


# Declarations without dimensions, tensors or inputs


def test_fixed_shapes_run_once_and_in_every_layout_and_special_value() -> None:
    plan = plan_of({"x": "float32[16, 16]"}, {})
    assert names(plan)[:2] == ["base", "base called again"]
    assert names(plan)[2:7] == ["x transposed", "x expanded", "x sliced", "x offset", "x rows far apart"]
    assert len(names(plan, "special")) == 16


def test_constants_alone_run_once() -> None:
    plan = plan_of({"eps": 0.0, "keep": True, "count": 3}, {})
    assert names(plan) == ["base"]
    assert plan.skipped == ()


def test_a_target_that_generates_its_own_inputs_varies_in_sizes_only() -> None:
    plan = plan_of({}, {"M": [8]})
    assert names(plan) == ["M=8", "M=9", "M=13", "M=1", "M=0", "M=7"]
    assert all(case.arguments == () for case in plan.cases)
    why = "the target generates its own inputs"
    assert reasons(plan) == {"layouts and special values": why, "sizes beyond the declared ones": why}


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


@settings(max_examples=60, deadline=None)
@given(declarations(), st.sampled_from((500, 20_000, LIMIT)), st.none() | st.integers(0, 5))
def test_every_plan_keeps_its_promises(declaration: Declaration | None, limit: int, seed: int | None) -> None:
    if declaration is None:
        return
    plan = plan_cases(declaration, limit_elements=limit, seed=seed)
    assert len(set(names(plan))) == len(plan.cases)
    assert not set(names(plan)) & set(reasons(plan))
    for case in plan.cases:
        assert declaration.violated(case.dims) is None
        assert sum(tensor.elements for tensor in tensors_in(case.arguments)) <= limit
        assert Case.model_validate_json(case.model_dump_json()) == case
    if plan.cases:
        assert case_for(declaration, plan.cases[-1].name, limit_elements=limit) == plan.cases[-1]
    for name, size in ((name, size) for name, sizes in declaration.dims.items() for size in sizes):
        run = any(case.dims[name] == size for case in plan.cases)
        listed = any(f"{name}={size}" in what.split() for what in reasons(plan))
        assert run or listed


@settings(max_examples=40, deadline=None)
@given(declarations())
def test_a_plan_is_empty_only_where_no_declared_sizes_can_be_drawn(declaration: Declaration | None) -> None:
    if declaration is None or plan_cases(declaration, limit_elements=LIMIT).cases:
        return
    for sizes in product(*declaration.dims.values()):
        dims = dict(zip(declaration.dims, sizes, strict=True))
        elements = sum(tensor.elements for tensor in tensors_in(declaration.arguments(dims)))
        assert declaration.violated(dims) or elements > LIMIT
