"""The plan of cases: layouts, dtypes, special values, large strides and options."""

import pytest

from pytorch_to_triton.inputs.case import Layout, TensorArgument
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import plan_cases

from .plans import LIMIT, case_named, names, plan_of, reasons, tensor

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
        "M=9 N=65 all strided",
    ]
    transposed = case_named(plan, "M=8 N=64 x transposed")
    assert tensor(transposed, "x").layout == "transposed"
    assert tensor(transposed, "w").layout == "contiguous"


def test_all_tensors_are_strided_at_once_at_an_odd_size_in_every_dtype() -> None:
    x, w = "float32|bfloat16[M, N]", "float32|bfloat16[N]"
    plan = plan_of({"x": x, "w": w, "s": "float32[]"}, {"M": [8], "N": [64]})
    assert [name for name in names(plan, "layout") if "all" in name] == [
        "M=9 N=65 all strided",
        "M=9 N=65 bfloat16 all strided",
    ]
    case = case_named(plan, "M=9 N=65 bfloat16 all strided")
    assert [tensor(case, name).layout for name in "xws"] == ["transposed", "sliced", "contiguous"]
    assert [tensor(case, name).dtype for name in "xws"] == ["bfloat16", "bfloat16", "float32"]


def test_one_tensor_of_a_fixed_shape_is_strided_once() -> None:
    assert "all strided" not in names(plan_of({"x": "float32[16, 16]"}, {}))
    assert "all strided" in names(plan_of({"x": "float32[16, 16]", "y": "float32[16]"}, {}))
    assert not [name for name in names(plan_of({"s": "float32[]"}, {})) if "strided" in name]


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
    together = ["inf in all", "nan in all", "minus inf row in x"]
    assert names(plan, "special") == [f"M=8 {label}" for label in (*labels, *together)]
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
    none = "float8_e4m3fn has no infinity"
    assert reasons(plan) == {"inf in x": none, "minus inf row in x": none}
    assert "nan in x" in names(plan)
    three = plan_of({"x": "float8_e4m3fn[4]", "y": "float32[4]", "z": "float32[4]"}, {})
    inf, nan = (case_named(three, f"{fill} in all") for fill in ("inf", "nan"))
    assert [tensor(inf, name).fill for name in "xyz"] == ["random", "inf_ends", "inf_opposed"]
    assert [tensor(nan, name).fill for name in "xyz"] == ["nan_ends"] * 3


def test_inf_and_nan_in_all_tensors_at_once_need_two() -> None:
    plan = plan_of({"x": "float32[M]", "i": "int32[M]", "p": "float32[M] in 0..1"}, {"M": [8]})
    assert "M=8 minus inf row in x" in names(plan, "special")
    assert not [name for name in names(plan) if "in all" in name]


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
        "M=9 N=65 float8_e4m3fn",
        "M=8 N=64 float8_e4m3fn small",
        "M=8 N=64 float8_e4m3fn huge in x",
        "M=8 N=64 float8_e4m3fn nan in x",
        "M=9 N=65 float8_e4m3fn all strided",
    ]
    assert reasons(plan)["float8_e4m3fn inf in x"] == "float8_e4m3fn has no infinity"
    nan = case_named(plan, "M=8 N=64 float8_e4m3fn nan in x")
    assert (tensor(nan, "x").dtype, tensor(nan, "x").fill) == ("float8_e4m3fn", "nan")
    assert (nan.group, nan.label) == ("special", "float8_e4m3fn nan in x")


def test_further_dtypes_are_also_tried_small_in_all_tensors_and_huge_in_the_first() -> None:
    claim = "float32|float16"
    plan = plan_of({"x": f"{claim}[4]", "w": f"{claim}[4]", "p": f"{claim}[4] in 0..1"}, {})
    small, huge = (case_named(plan, f"float16 {label}") for label in ("small", "huge in x"))
    assert [tensor(small, name).fill for name in "xwp"] == ["small", "small", "random"]
    assert [tensor(huge, name).fill for name in "xwp"] == ["huge", "random", "random"]
    assert {tensor(case, name).dtype for case in (small, huge) for name in "xwp"} == {"float16"}


def test_tensors_that_declare_different_dtypes_change_apart() -> None:
    plan = plan_of({"x": "float32|bfloat16[4]", "i": "int64|int32|int8[4]"}, {})
    assert names(plan, "dtype") == ["bfloat16 x", "int32 i", "int8 i"]
    case = case_named(plan, "int8 i")
    assert [tensor(case, name).dtype for name in "xi"] == ["float32", "int8"]


# Large strides


def test_each_tensor_has_large_strides_once_at_the_smallest_sizes_that_leave_it_rows() -> None:
    plan = plan_of({"x": "float32[M, N]", "w": "bfloat16[N]"}, {"M": [1, 7, 64], "N": [2, 5, 64, 512]})
    assert names(plan, "large_stride") == ["M=7 N=5 x rows far apart", "M=7 N=5 w rows far apart"]
    strided = case_named(plan, "M=7 N=5 x rows far apart")
    assert [tensor(strided, name).layout for name in "xw"] == ["large_stride", "contiguous"]
    assert 2**31 * 4 < tensor(strided, "x").span_bytes < 2**31 * 4 + 1000
    assert tensor(strided, "x").elements == 35


def test_large_strides_that_the_run_has_no_room_for_are_listed() -> None:
    declaration = parse_declaration({"x": "float32[4]", "h": "int8[4]", "s": "float32[]"}, {})
    without = reasons(plan_cases(declaration, limit_elements=LIMIT))
    what = {name: f"offsets beyond 2^31 elements in {name}" for name in "xhs"}
    assert without[what["x"]] == "it would span 8.0 GiB, and this run sets no memory aside for that"
    tight = plan_cases(declaration, limit_elements=LIMIT, limit_span_bytes=2**32)
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


def test_each_float_constant_is_tried_at_ten_times_its_value() -> None:
    inputs: dict[str, object] = {"x": "float32[M]", "eps": 1e-5, "slope": 0.01, "zero": 0.0, "keep": True}
    plan = plan_of({**inputs, "axis": 1, "mode": "mean", "pads": [0.5, 2]}, {"M": [8]})
    assert names(plan, "option") == ["M=8 eps x 10", "M=8 slope x 10"]
    case = case_named(plan, "M=8 eps x 10")
    constants = {item.name: item.value for item in case.arguments if item.form == "constant"}
    assert constants == {
        "eps": pytest.approx(1e-4),
        "slope": 0.01,
        "zero": 0.0,
        "keep": True,
        "axis": 1,
        "mode": "mean",
        "pads": (0.5, 2),
    }


def test_a_constant_that_has_no_tenfold_stays() -> None:
    plan = plan_of({"x": "float32[M]", "high": 1e308}, {"M": [8]})
    assert names(plan, "option") == []
