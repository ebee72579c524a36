"""The plan of cases: dtypes, large strides, other numbers, and conditions that meet."""

from collections.abc import Iterable
from itertools import combinations, product

import pytest

from pytorch_to_triton.inputs.case import Case, Layout, TensorArgument, tensors_in
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import CasePlan, add_multiples, add_thresholds
from pytorch_to_triton.validate.factors import VALUES
from pytorch_to_triton.validate.host_code import Switch
from pytorch_to_triton.worker.calls.generate import large_strides

from .plans import builder_of, case_for, case_named, names, plan_cases, planned, reasons, tensor

ROWS: dict[str, object] = {"M": [1, 7, 64], "N": [1, 64, 1000]}
CLAIM = "float32|bfloat16|float16"


def combined(plan: CasePlan) -> list[Case]:
    return [case for case in plan.cases if case.label and case.group in ("combined", "special", "layout")]


def values_of(case: Case) -> frozenset[str]:
    """The kinds of values in it, by the first word that names them."""
    fills = {argument.fill for argument in tensors_in(case.arguments)} - {"random", "same_corners"}
    kinds = {fill: kind for kind, alike in VALUES.items() for fill in sum(alike, ())}
    return frozenset(kinds.get(fill, "inf") for fill in fills)


def values_in(cases: Iterable[Case]) -> frozenset[str]:
    return frozenset[str]().union(*map(values_of, cases))


# Conditions that meet


def test_each_kind_of_values_meets_each_dtype_at_a_size_that_fills_no_block() -> None:
    cases = combined(planned({"x": f"{CLAIM}[M, N]"}, ROWS))
    for kind, dtype, dim in product(VALUES, CLAIM.split("|"), ("M", "N")):
        meeting = [c for c in cases if kind in values_of(c) and tensor(c, "x").dtype == dtype]
        assert any(c.dims[dim] == 1 or c.dims[dim].bit_count() > 1 for c in meeting), (kind, dtype, dim)


def test_each_kind_of_values_meets_one_element_a_full_block_a_tail_and_a_long_row() -> None:
    cases = combined(planned({"x": f"{CLAIM}[M, N]"}, ROWS))
    for kind in VALUES:
        sizes = {case.dims["N"] for case in cases if kind in values_of(case)}
        assert 1 in sizes, kind
        assert any(size.bit_count() == 1 for size in sizes - {1}), kind
        assert any(size.bit_count() > 1 and size <= 1000 for size in sizes), kind
        assert any(size > 1000 for size in sizes), kind


def test_layouts_of_two_tensors_meet_in_each_combination_and_each_meets_each_kind_of_values() -> None:
    cases = combined(planned({"x": f"{CLAIM}[M, N]", "y": f"{CLAIM}[M, N]"}, ROWS))
    layouts = ("contiguous", "transposed", "expanded", "apart")

    def layout(case: Case, name: str) -> str:
        return {"sliced": "apart", "offset": "apart"}.get(
            tensor(case, name).layout, tensor(case, name).layout
        )

    pairs = {(layout(case, "x"), layout(case, "y")) for case in cases}
    assert pairs == set(product(layouts, layouts))
    for kind in VALUES:
        with_values = [case for case in cases if kind in values_of(case)]
        assert {layout(case, "x") for case in with_values} == set(layouts), kind
        assert any(layout(c, "x") == layout(c, "y") == "contiguous" for c in with_values), kind


def test_nan_and_infinity_are_given_to_each_tensor_alone_and_to_all() -> None:
    tensors = "abcd"
    plan = planned(dict.fromkeys(tensors, "float32[N]"), {"N": [4, 100]})
    labels = {part for case in plan.cases for part in case.label.split(", ")}
    wanted = [f"{value} in {name}" for value in ("nan", "inf") for name in (*tensors, "all")]
    assert set(wanted) <= labels


def test_each_configuration_meets_each_kind_of_size() -> None:
    declaration = parse_declaration({"x": "float32[M, N]"}, ROWS)
    cases = combined(plan_cases(declaration, configurations=3))
    for number, dim in product(range(3), ("M", "N")):
        sizes = {case.dims[dim] for case in cases if case.configuration == number}
        assert 1 in sizes
        assert any(size.bit_count() == 1 for size in sizes - {1})
        assert any(size.bit_count() > 1 for size in sizes)


def test_each_side_of_a_switch_is_tried_with_several_kinds_of_values() -> None:
    plan = planned({"x": "float32[M, N]"}, ROWS, switches=[(16384, "N")])
    past = [case for case in combined(plan) if case.dims["N"] > 16384]
    assert {case.dims["N"] for case in past} == {16385}
    assert len(values_in(past)) >= 4
    assert any(case.dims["N"] == 16384 for case in plan.cases)


def test_each_way_that_the_code_takes_meets_nan_and_infinities() -> None:
    switches = [(128, "M"), (512, "M"), (2048, "N"), (16384, "N")]
    plan = planned({"x": "float32|bfloat16[M, N]"}, ROWS, switches=switches)
    for name, sizes in (("M", (129, 513)), ("N", (2049, 16385))):
        for size in sizes:
            past = values_in(case for case in combined(plan) if case.dims[name] == size)
            assert past >= {"nan", "inf"}


def test_values_that_grow_along_each_dimension_meet_sizes_past_a_switch_in_rows_that_differ() -> None:
    for name, large in (("N", 16385), ("M", 513)):
        plan = planned({"x": "float32|bfloat16[M, N]"}, ROWS, switches=[(large - 1, name)])
        past = [case for case in combined(plan) if case.dims[name] == large]
        differ = [case for case in past if all(t.layout != "expanded" for t in tensors_in(case.arguments))]
        assert values_in(differ) >= {"positive", "negative"}


def test_long_rows_hold_values_of_one_sign_in_each_dtype_whatever_the_seed() -> None:
    for seed in range(4):
        plan = planned({"x": f"{CLAIM}[M, N]"}, ROWS, seed=seed)
        long = [case for case in combined(plan) if case.dims["N"] > 1000]
        signs = [case for case in long if values_of(case) & {"positive", "negative"}]
        assert {dtype for case in signs for dtype in case.dtypes.values()} == {*CLAIM.split("|")}


def test_a_way_that_two_sizes_take_together_meets_random_values_nan_and_infinities_with_a_tail() -> None:
    inputs = {"x": "float32|bfloat16[M, K]", "w": "float32|bfloat16[K, N]"}
    dims: dict[str, object] = {"M": [1, 64], "N": [1, 64], "K": [1, 64]}
    plan = planned(inputs, dims, switches=[(512, "M"), (512, "N")])
    both = [c for c in plan.cases if min(c.dims["M"], c.dims["N"]) > 512 and c.dims["K"].bit_count() != 1]
    full = [case for case in both if {*case.dtypes.values()} == {"float32"}]
    assert {values_of(case) for case in full} >= {frozenset(), frozenset({"nan"}), frozenset({"inf"})}


def test_rows_past_a_switch_hold_random_values_in_the_first_dtypes_once() -> None:
    inputs = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]"}
    plan = planned(inputs, ROWS, switches=[(16384, "N")])
    past = [case for case in plan.cases if case.dims["N"] > 16384 and case.group != "large_stride"]
    plain = [c for c in past if {t.fill for t in tensors_in(c.arguments)} == {"random"}]
    assert any({*case.dtypes.values()} == {"float32"} for case in plain)


def test_sizes_keep_to_requirements_and_fill_no_block_where_they_allow_it() -> None:
    plan = planned({"x": "float32[N]"}, {"N": [64, 128]}, "N % 16 == 0", switches=[(1024, "N")])
    sizes = {case.dims["N"] for case in combined(plan)}
    assert all(size % 16 == 0 for size in sizes)
    assert {80, 1088} <= sizes
    bounded = planned({"x": "float32[N]"}, {"N": [64]}, "N <= 64")
    assert max(case.dims["N"] for case in bounded.cases) == 64


def test_some_sizes_are_at_random_and_the_same_for_the_same_seed() -> None:
    dims: dict[str, object] = {"N": [64, 4096]}

    def sizes(seed: int) -> frozenset[int]:
        return frozenset(case.dims["N"] for case in planned({"x": "float32[N]"}, dims, seed=seed).cases)

    assert sizes(3) == sizes(3)
    assert len({sizes(seed) for seed in range(8)}) > 4


def test_conditions_that_cannot_meet_are_listed() -> None:
    plan = planned({"x": "float32[M, N]"}, ROWS, "M * N <= 2000")
    (why,) = (why for what, why in reasons(plan).items() if what.endswith("combinations of conditions"))
    assert "together: " in why
    assert "M long with N long" in why


@pytest.mark.parametrize(
    ("inputs", "most"),
    [
        ({"x": f"{CLAIM}[M, N]"}, 71),
        ({"x": f"{CLAIM}[N]", "y": f"{CLAIM}[N]"}, 67),
        ({"x": f"{CLAIM}[M, N]", "r": f"{CLAIM}[M, N]", "w": f"{CLAIM}[N]", "eps": 1e-6}, 90),
        ({f"x{index}": "float32[M, N]" for index in range(12)}, 100),
    ],
    ids=["a tensor", "two vectors", "three tensors", "twelve tensors"],
)
def test_a_plan_stays_small(inputs: dict[str, object], most: int) -> None:
    dims = {name: sizes for name, sizes in ROWS.items() if f"{name}" in str(inputs.values())}
    assert len(planned(inputs, dims).cases) <= most


def test_no_two_cases_are_the_same() -> None:
    plan = planned({"x": f"{CLAIM}[M, N]", "i": "int64[M] in 0..N"}, ROWS)
    assert not any(one.name == other.name for one, other in combinations(plan.cases, 2))


# Values and dtypes


def test_ties_are_given_to_integers_too_and_alone_where_nothing_floats() -> None:
    inputs: dict[str, object] = {
        "x": "float32[M]",
        "i": "int32[M]",
        "b": "bool[M]",
        "p": "float32[M] in 0..1",
    }
    ties = case_for(parse_declaration(inputs, {"M": [8]}), "M=8 ties")
    assert [tensor(ties, name).fill for name in "xibp"] == ["ties", "ties", "random", "random"]
    assert "ties" in names(planned({"i": "int64[4] in 0..9"}, {}))


def test_a_tensor_with_a_declared_range_holds_nothing_else_and_its_ends_in_one_case() -> None:
    inputs: dict[str, object] = {"p": "float32[4] in 0.1..1.0", "q": "float32[4] in 0..1"}
    plan = planned({"a": "float32[4]", **inputs}, {})
    why = "its range is declared: 0.1..1.0, where only the ends are special"
    assert reasons(plan)["special values of p"] == why
    (ends,) = (case for case in plan.cases if tensor(case, "p").fill != "random")
    assert (ends.name, ends.group) == ("ends of ranges", "special")
    assert [tensor(ends, name).fill for name in "apq"] == ["random", "ends", "ends"]


def test_integers_without_a_range_reach_the_ends_of_their_dtype_in_one_case() -> None:
    plan = planned({"i": "int64[4]", "j": "int8[4]", "k": "int64[4] in 0..9", "x": "float32[4]"}, {})
    (case,) = (case for case in plan.cases if tensor(case, "i").fill == "extremes")
    assert (case.name, case.group) == ("integer extremes", "special")
    assert [tensor(case, name).fill for name in "ijkx"] == ["extremes", "extremes", "random", "random"]
    assert "integer extremes" not in names(planned({"k": "int64[4] in 0..9", "m": "bool[4]"}, {}))


def test_masks_are_all_false_and_all_true_and_labels_are_all_ignored() -> None:
    inputs: dict[str, object] = {"x": "float32[M, 9]", "m": "bool[M]", "t": "int64[M] in 0..9 or -100"}
    plan = planned(inputs, {"M": [8]})
    for name, fills in (
        ("M=8 all false", ("random", "zeros", "random")),
        ("M=8 all true", ("random", "ones", "random")),
        ("M=8 all outside", ("random", "random", "outside")),
    ):
        case = case_named(plan, name)
        assert (case.group, tuple(tensor(case, name).fill for name in "xmt")) == ("special", fills)


def test_numbers_that_are_compared_with_are_among_the_values_with_both_signs() -> None:
    inputs: dict[str, object] = {"x": "float32[M]", "lambd": 0.7, "n": 3, "p": "float32[M] in 0..1"}
    plan = builder_of(parse_declaration({**inputs, "y": "float32[M]", "d": "float64[M]"}, {"M": [8]}))
    add_thresholds(plan, (0.25, 0.7, 6.0))
    case = plan.cases["M=8 thresholds"]
    numbers = (0.7, -0.7, 0.25, -0.25, 6.0, -6.0)
    assert [tensor(case, name).among for name in "xypd"] == [numbers, numbers, (), ()]
    assert case.group == "special"
    assert plan.combined({"M": 4}, ("thresholds", "x sliced")) is not None
    without = builder_of(parse_declaration({"x": "float32[4]", "n": 3}, {}))
    add_thresholds(without, ())
    assert "thresholds" not in without.cases


def test_three_whole_tiles_are_tried_at_the_smallest_other_sizes() -> None:
    plan = builder_of(parse_declaration({"x": "float32[M, N]"}, ROWS))
    add_multiples(plan, [(384, "N"), (192, "M")])
    assert (plan.cases["M=1 N=384"].group, plan.cases["M=192 N=1"].group) == ("odd", "beyond")


def test_infinity_is_not_asked_of_a_dtype_that_has_none() -> None:
    plan = planned({"x": "float8_e4m3fn|float32[4]"}, {})
    for case in plan.cases:
        if tensor(case, "x").dtype == "float8_e4m3fn":
            assert "inf" not in tensor(case, "x").fill
    labels = {part for case in plan.cases for part in case.label.split(", ")}
    assert {"nan in x", "inf in x"} <= labels


def test_each_further_dtype_runs_at_the_middle() -> None:
    inputs: dict[str, object] = {"x": "float32|bfloat16[M]", "w": "float32|bfloat16[M]", "b": "float32[M]"}
    plan = planned(inputs, {"M": [1, 8, 64]})
    assert names(plan, "dtype") == ["M=8 bfloat16"]
    case = case_named(plan, "M=8 bfloat16")
    assert [tensor(case, name).dtype for name in "xwb"] == ["bfloat16", "bfloat16", "float32"]


def test_tensors_that_declare_different_dtypes_change_apart() -> None:
    plan = planned({"x": "float32|bfloat16[4]", "i": "int64|int32|int8[4]"}, {})
    assert names(plan, "dtype") == ["bfloat16 x", "int32 i", "int8 i"]
    case = case_named(plan, "int8 i")
    assert [tensor(case, name).dtype for name in "xi"] == ["float32", "int8"]


# Large strides


def test_each_tensor_has_large_strides_once_at_the_smallest_sizes_that_leave_it_rows() -> None:
    plan = planned({"x": "float32[M, N]", "w": "bfloat16[N]"}, {"M": [1, 7, 64], "N": [2, 5, 64, 512]})
    assert names(plan, "large_stride") == ["M=7 N=5 x rows far apart", "M=7 N=5 w rows far apart"]
    strided = case_named(plan, "M=7 N=5 x rows far apart")
    assert [tensor(strided, name).layout for name in "xw"] == ["large_stride", "contiguous"]
    assert 2**31 * 4 < tensor(strided, "x").span_bytes < 2**31 * 4 + 1000
    assert tensor(strided, "x").elements == 35


@pytest.mark.parametrize(
    ("lengths", "switches", "longest"),
    [([2, 512], [(16384, "N")], 16385), ([2, 20_000], [], 20_000)],
    ids=["past a switch", "at the longest declared row"],
)
def test_rows_and_columns_of_long_rows_are_far_apart_too(
    lengths: list[int], switches: list[Switch], longest: int
) -> None:
    plan = planned({"x": "float32[M, N]", "w": "float32[N]"}, {"M": [1, 7], "N": lengths}, switches=switches)
    rows, columns = (case_named(plan, f"M={m} N={longest} x far apart") for m in (3, 1))
    assert {tensor(case, "x").layout for case in (rows, columns)} == {"large_stride"}
    assert large_strides((3, longest))[0] * 2 > 2**31
    assert large_strides((1, longest))[1] * (longest - 1) > 2**31


def test_large_strides_that_the_run_has_no_room_for_are_listed() -> None:
    declaration = parse_declaration({"x": "float32[4]", "h": "int8[4]", "s": "float32[]"}, {})
    what = {name: f"offsets beyond 2^31 elements in {name}" for name in "xhs"}
    tight = plan_cases(declaration, span=2**32)
    assert names(tight, "large_stride") == ["h rows far apart"]
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
        ("large_stride", (0, 40), 0),
        ("expanded", (0, 40), 0),
    ],
)
def test_a_tensor_knows_what_its_storage_spans(layout: Layout, shape: tuple[int, ...], elements: int) -> None:
    assert TensorArgument(name="x", dtype="int16", shape=shape, layout=layout).span_bytes == 2 * elements


# Options


def test_each_float_constant_is_tried_at_half_its_value_and_a_tiny_one_at_a_tenth() -> None:
    inputs: dict[str, object] = {"x": "float32[M]", "eps": 1e-5, "slope": -0.5, "zero": 0.0, "keep": True}
    plan = planned({**inputs, "axis": 1, "mode": "mean", "pads": [0.5, 2]}, {"M": [8]})
    assert names(plan, "option") == ["M=8 eps 0.1", "M=8 slope -0.25", "M=8 zero 0.1"]
    case = case_named(plan, "M=8 eps 0.1")
    constants = {item.name: item.value for item in case.arguments if item.form == "constant"}
    assert (constants["eps"], constants["slope"]) == (0.1, -0.5)
