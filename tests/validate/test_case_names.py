"""Cases by name: what a verdict names can be run again, at the same sizes or at smaller ones."""

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import parse_declaration

from .plans import builder_of, case_for, case_of, names, plan_cases, tensor

DIMS: dict[str, object] = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


def again(name: str, inputs: dict[str, object], dims: dict[str, object], *requires: str) -> Case:
    return case_for(parse_declaration(inputs, dims, requires), name)


X: dict[str, object] = {"x": "float32|bfloat16[M, N]"}


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("M=3 N=5", "odd"),
        ("M=7 N=64", "declared"),
        ("M=7 N=64 x transposed", "layout"),
        ("M=7 N=64 x rows far apart", "large_stride"),
        ("M=7 N=64 bfloat16", "dtype"),
        ("M=7 N=64 equal rows", "special"),
        ("M=7 N=64 called again", "repeat"),
        ("M=7 N=64 bfloat16, nan in x", "combined"),
        ("M=3 N=5 x sliced", "combined"),
        ("M=3 N=5 bfloat16, x transposed, minus inf row in x", "combined"),
    ],
)
def test_a_name_makes_a_case_of_any_allowed_sizes_and_conditions(name: str, group: str) -> None:
    case = again(name, X, DIMS)
    assert (case.name, case.group) == (name, group)
    assert tensor(case, "x").shape == (case.dims["M"], case.dims["N"])
    x = tensor(case, "x")
    assert (x.dtype == "bfloat16") == ("bfloat16" in name)
    assert (x.layout == "transposed") == ("transposed" in name)
    assert (x.fill == "minus_inf_row") == ("minus inf row" in name)
    assert case.again_after == ("M=7 N=64" if group == "repeat" else None)


def test_each_planned_case_is_made_again_from_its_name() -> None:
    declaration = parse_declaration(X, DIMS)
    plan = plan_cases(declaration, seed=7)
    builder = builder_of(declaration)
    assert [case_of(builder, name) for name in names(plan)] == [*plan.cases]


def test_sizes_in_another_order_name_the_same_case() -> None:
    assert again(" N=64  M=7 x sliced", X, DIMS) == again("M=7 N=64 x sliced", X, DIMS)


def test_another_value_of_a_constant_is_made_again() -> None:
    case = again("M=7 N=64 eps 0.1", {**X, "eps": 1e-5}, DIMS)
    (eps,) = (item for item in case.arguments if item.form == "constant")
    assert (case.group, eps.value) == ("option", 0.1)
    assert again("cap 0.5", {"cap": 1.0}, {}).name == "cap 0.5"


def test_cases_without_dimensions_and_without_inputs_of_ours_are_made_again() -> None:
    assert again("base", {"x": "float32[4]"}, {}).group == "declared"
    assert again("base called again", {"x": "float32[4]"}, {}).again_after == "base"
    assert again("x offset", {"x": "float32[4]"}, {}).label == "x offset"
    assert again("M=8", {}, {"M": [8]}).arguments == ()
    assert again("M=5", {}, {"M": [8]}).dims == {"M": 5}


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("M=7 N=64 x transpsed", "No case has the condition 'x transpsed'.", "M=7 N=64 x transposed"),
        ("M=7 K=64", "names K, which is no dimension", "Dimensions are M, N."),
        ("M=7", "has no size of N", "Start with M=SIZE N=SIZE. Nearest: M=7 N="),
        ("base", "has no size of M, N", "Start with M=SIZE N=SIZE."),
        ("", "has no size of M, N", "Start with M=SIZE N=SIZE."),
        ("M=7 N=-1", "'-1' is no size of N", "integers"),
        ("M=7 N=64 N=65", "names N twice", "Keep one N=SIZE."),
        ("M=7 N=66", "cannot be run: requires N % 4 == 0.", "M=7 N=64"),
        ("M=7000000 N=64", "896,000,000 elements are over this run's limit", "Name other sizes."),
        ("M=1 N=1 x rows far apart", "cannot be run: requires N % 4 == 0.", "Name other sizes."),
        ("M=1 N=0 x rows far apart", "it has no two rows to move apart.", "Name other sizes."),
    ],
)
def test_a_name_that_fits_nothing_is_refused_with_the_nearest_ones(
    name: str, message: str, hint: str
) -> None:
    with pytest.raises(BadInput) as refused:
        again(name, {**X, "e": "float8_e4m3fn[M, N]"}, DIMS, "N % 4 == 0")
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_case_of_large_strides_is_refused_where_the_run_has_no_room() -> None:
    declaration = parse_declaration({"x": "float32[M]"}, {"M": [8]})
    with pytest.raises(BadInput, match=r"are over this run's limit of 0\.0 GiB"):
        case_for(declaration, "M=8 x rows far apart", span=0)
