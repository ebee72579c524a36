"""The plan of cases: what is run, what is left out, and that nothing is dropped silently."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.schema.case import Case, Layout, TensorArgument, tensors_in
from pytorch_to_triton.schema.declaration import Declaration, parse_declaration
from pytorch_to_triton.schema.sizes import middle_size, nearby
from pytorch_to_triton.validate.cases import CasePlan, case_for, plan_cases

LIMIT = 10_000_000
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}
SPAN = 2**36


def plan_of(
    inputs: dict[str, object], dims: dict[str, object], *requires: str, limit: int = LIMIT
) -> CasePlan:
    return plan_cases(parse_declaration(inputs, dims, requires), limit_elements=limit, limit_span_bytes=SPAN)


def names(plan: CasePlan, group: str | None = None) -> list[str]:
    return [case.name for case in plan.cases if group in (None, case.group)]


def reasons(plan: CasePlan) -> dict[str, str]:
    return {skip.what: skip.why for skip in plan.skipped}


def case_named(plan: CasePlan, name: str) -> Case:
    return next(case for case in plan.cases if case.name == name)


def tensor(case: Case, name: str) -> TensorArgument:
    return next(found for found in tensors_in(case.arguments) if found.name == name)


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
    assert names(plan, "odd") == ["M=9 N=64", "M=13 N=64", "M=8 N=65", "M=8 N=13"]
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


# The limit


def test_sizes_over_the_limit_are_listed_and_declared_ones_kept_with_smaller_others() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [2, 256], "N": [64, 4096]}, limit=20_000)
    assert reasons(plan)["M=256 N=4096"] == "1,048,576 elements are over this run's limit of 20,000"
    assert "M=2 N=4096" in names(plan, "declared")
    assert "M=256 N=64" in names(plan, "declared")


def test_sizes_that_are_all_over_the_limit_are_halved_within_the_requirements() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [4096], "N": [4096]}, "N % 256 == 0", limit=1_000_000)
    assert names(plan, "reduced") == ["M=256 N=512", "M=128 N=4096"]
    assert names(plan, "odd") == ["M=65 N=256", "M=13 N=256", "M=64 N=768"]
    assert reasons(plan)["M=4096 N=512"] == "2,097,152 elements are over this run's limit of 1,000,000"


def test_a_middle_is_halved_rather_than_replaced_by_sizes_of_one() -> None:
    plan = plan_of({"x": "float32[M, N]"}, {"M": [1, 65536], "N": [1, 65536]}, limit=1_000_000)
    assert names(plan)[0] == "M=256 N=512"
    assert "M=65536 N=8" in names(plan, "reduced")


def test_a_fixed_shape_over_the_limit_leaves_an_empty_plan_that_says_why() -> None:
    plan = plan_of({"x": "float32[2000]"}, {}, limit=1000)
    assert plan.cases == ()
    assert reasons(plan) == {"base": "2,000 elements are over this run's limit of 1,000"}


# Layouts, dtypes and special values


def test_every_tensor_is_laid_out_in_each_way_that_its_rank_allows() -> None:
    plan = plan_of({"x": "float32[M, N]", "w": "float32[N]", "s": "float32[]"}, {"M": [8], "N": [64]})
    assert names(plan, "layout") == [
        "M=8 N=64 x transposed",
        "M=8 N=64 x expanded",
        "M=8 N=64 x sliced",
        "M=8 N=64 x offset",
        "M=8 N=64 w sliced",
        "M=8 N=64 w offset",
    ]
    transposed = case_named(plan, "M=8 N=64 x transposed")
    assert tensor(transposed, "x").layout == "transposed"
    assert tensor(transposed, "w").layout == "contiguous"


def test_items_of_a_list_are_laid_out_one_at_a_time() -> None:
    plan = plan_of({"xs": ["float32[M]", "float32[M]"]}, {"M": [8]})
    case = case_named(plan, "M=8 xs[1] sliced")
    assert [tensor(case, name).layout for name in ("xs[0]", "xs[1]")] == ["contiguous", "sliced"]


def test_special_values_fill_all_floating_tensors_but_inf_and_nan_one() -> None:
    plan = plan_of({"x": "float32[M]", "y": "float32[M]", "i": "int32[M]"}, {"M": [8]})
    magnitudes = ["zeros", "ones", "equal rows", "large", "small", "tiny", "denormal"]
    signs = ["negative", "negative zero", "alternating"]
    non_finite = ["inf in x", "nan in x", "inf in y", "nan in y"]
    labels = (*magnitudes, *signs, "huge in x", "shifted x", "ties", *non_finite)
    assert names(plan, "special") == [f"M=8 {label}" for label in labels]
    equal_rows = case_named(plan, "M=8 equal rows")
    assert [tensor(equal_rows, name).fill for name in "xyi"] == ["equal_rows", "equal_rows", "random"]
    nan = case_named(plan, "M=8 nan in y")
    assert [tensor(nan, name).fill for name in "xyi"] == ["random", "nan", "random"]


def test_ties_are_given_to_integers_too_and_alone_where_nothing_floats() -> None:
    plan = plan_of(
        {"x": "float32[M]", "i": "int32[M]", "b": "bool[M]", "p": "float32[M] in 0..1"}, {"M": [8]}
    )
    ties = case_named(plan, "M=8 ties")
    assert [tensor(ties, name).fill for name in "xibp"] == ["ties", "ties", "random", "random"]
    assert names(plan_of({"i": "int64[4] in 0..9"}, {}), "special") == ["ties"]


def test_special_values_that_are_not_tried_are_listed() -> None:
    inputs = {"a": "float32[4]", "b": "float32[4]", "c": "float32[4]", "p": "float32[4] in 0.1..1.0"}
    plan = plan_of({**inputs}, {})
    assert reasons(plan) == {
        "special values of p": "its range is declared: 0.1..1.0",
        "inf and nan in c": "only 2 tensors of a target are given them",
    }
    assert all(tensor(case, "p").fill == "random" for case in plan.cases)


def test_infinity_is_not_asked_of_a_dtype_that_has_none() -> None:
    plan = plan_of({"x": "float8_e4m3fn[4]"}, {})
    assert reasons(plan) == {"inf in x": "float8_e4m3fn has no infinity"}
    assert "nan in x" in names(plan)


def test_further_dtypes_run_at_the_middle_and_at_both_corners() -> None:
    inputs: dict[str, object] = {"x": "float32|bfloat16[M]", "w": "float32|bfloat16[M]", "b": "float32[M]"}
    plan = plan_of(inputs, {"M": [1, 8, 64]})
    assert names(plan, "dtype") == ["M=8 bfloat16", "M=1 bfloat16", "M=64 bfloat16"]
    case = case_named(plan, "M=8 bfloat16")
    assert [tensor(case, name).dtype for name in "xwb"] == ["bfloat16", "bfloat16", "float32"]


def test_further_dtypes_also_run_at_an_odd_size_and_with_inf_and_nan() -> None:
    plan = plan_of({"x": "float32|float8_e4m3fn[M, N]", "i": "int64[N]"}, {"M": [8], "N": [64]})
    further = [name for name in names(plan) if "float8_e4m3fn" in name]
    assert further == [
        "M=8 N=64 float8_e4m3fn",
        "M=8 N=65 float8_e4m3fn",
        "M=8 N=64 float8_e4m3fn nan in x",
    ]
    assert reasons(plan)["float8_e4m3fn inf in x"] == "float8_e4m3fn has no infinity"
    nan = case_named(plan, "M=8 N=64 float8_e4m3fn nan in x")
    assert (tensor(nan, "x").dtype, tensor(nan, "x").fill) == ("float8_e4m3fn", "nan")
    assert (nan.group, nan.label) == ("special", "float8_e4m3fn nan in x")


def test_tensors_that_claim_different_dtypes_change_apart() -> None:
    plan = plan_of({"x": "float32|bfloat16[4]", "i": "int64|int32|int8[4]"}, {})
    assert names(plan, "dtype") == ["bfloat16 x", "int32 i", "int8 i"]
    case = case_named(plan, "int8 i")
    assert [tensor(case, name).dtype for name in "xi"] == ["float32", "int8"]


# Far tensors


def test_each_tensor_is_far_once_at_the_smallest_sizes_that_leave_it_rows() -> None:
    plan = plan_of({"x": "float32[M, N]", "w": "bfloat16[N]"}, {"M": [1, 7, 64], "N": [2, 5, 64, 512]})
    assert names(plan, "far") == ["M=7 N=5 x far", "M=7 N=5 w far"]
    far = case_named(plan, "M=7 N=5 x far")
    assert [tensor(far, name).layout for name in "xw"] == ["far", "contiguous"]
    assert 2**31 * 4 < tensor(far, "x").span_bytes < 2**31 * 4 + 1000
    assert tensor(far, "x").elements == 35


def test_far_tensors_that_the_run_has_no_room_for_are_listed() -> None:
    declaration = parse_declaration({"x": "float32[4]", "h": "int8[4]", "s": "float32[]"}, {})
    without = reasons(plan_cases(declaration, limit_elements=LIMIT))
    what = {name: f"offsets beyond 2^31 elements in {name}" for name in "xhs"}
    assert without[what["x"]] == "it would span 8.0 GiB, and this run sets no memory aside for that"
    tight = plan_cases(declaration, limit_elements=LIMIT, limit_span_bytes=2**32)
    assert names(tight, "far") == ["h far"]
    assert reasons(tight)[what["x"]] == "8.0 GiB are over this run's limit of 4.0 GiB"
    assert reasons(tight)[what["s"]] == "it has no two rows to move apart"


@pytest.mark.parametrize(
    ("layout", "shape", "elements"),
    [
        ("contiguous", (6, 40), 240),
        ("transposed", (6, 40), 240),
        ("expanded", (6, 40), 40),
        ("expanded", (40,), 40),
        ("sliced", (6, 40), 480),
        ("offset", (6, 40), 241),
        ("offset", (), 2),
        ("far", (0, 40), 0),
        ("expanded", (0, 40), 0),
    ],
)
def test_a_tensor_knows_what_its_storage_spans(layout: Layout, shape: tuple[int, ...], elements: int) -> None:
    assert TensorArgument(name="x", dtype="int16", shape=shape, layout=layout).span_bytes == 2 * elements


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
    assert len(softmax.cases) <= 60
    many: dict[str, object] = {f"x{index}": "float32[M, N]" for index in range(12)}
    few = len(plan_of({"x0": many["x0"]}, {"M": [8], "N": [64]}).cases)
    each_layout_and_far, non_finite_in_a_second = 11 * 5, 2
    plan = plan_of(many, {"M": [8], "N": [64]})
    assert len(plan.cases) == few + each_layout_and_far + non_finite_in_a_second


# Declarations without dimensions, tensors or inputs


def test_fixed_shapes_run_once_and_in_every_layout_and_special_value() -> None:
    plan = plan_of({"x": "float32[16, 16]"}, {})
    assert names(plan)[:2] == ["base", "base called again"]
    assert names(plan)[2:7] == ["x transposed", "x expanded", "x sliced", "x offset", "x far"]
    assert len(names(plan, "special")) == 15


def test_constants_alone_run_once() -> None:
    plan = plan_of({"eps": 1e-5}, {})
    assert names(plan) == ["base"]
    assert plan.skipped == ()


def test_a_target_that_draws_its_own_inputs_varies_in_sizes_only() -> None:
    plan = plan_of({}, {"M": [8]})
    assert names(plan) == ["M=8", "M=9", "M=13", "M=1", "M=0", "M=7"]
    assert all(case.arguments == () for case in plan.cases)
    assert reasons(plan) == {"layouts and special values": "the target draws its own inputs"}


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
@given(declarations(), st.sampled_from((500, 20_000, LIMIT)))
def test_every_plan_keeps_its_promises(declaration: Declaration | None, limit: int) -> None:
    if declaration is None:
        return
    plan = plan_cases(declaration, limit_elements=limit)
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
