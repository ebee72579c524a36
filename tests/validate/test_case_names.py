"""Cases by name: what a verdict names can be run again, at the same sizes or at smaller ones."""

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case, TensorArgument, tensors_in
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import case_for, plan_cases

LIMIT = 10_000_000
SPAN = 2**36
DIMS: dict[str, object] = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096]}


def planned() -> tuple[Case, ...]:
    declaration = parse_declaration(X, DIMS)
    return plan_cases(declaration, limit_elements=LIMIT, limit_span_bytes=SPAN).cases


def tensor(case: Case, name: str) -> TensorArgument:
    return next(found for found in tensors_in(case.arguments) if found.name == name)


def again(name: str, inputs: dict[str, object], dims: dict[str, object], *requires: str) -> Case:
    declaration = parse_declaration(inputs, dims, requires)
    return case_for(declaration, name, limit_elements=LIMIT, limit_span_bytes=SPAN)


X: dict[str, object] = {"x": "float32|bfloat16[M, N]"}


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("M=3 N=5", "requested"),
        ("M=3 N=5 x transposed", "layout"),
        ("M=3 N=5 x rows far apart", "large_stride"),
        ("M=3 N=5 bfloat16", "dtype"),
        ("M=3 N=5 bfloat16 nan in x", "special"),
        ("M=3 N=5 equal rows", "special"),
        ("M=3 N=5 all strided", "layout"),
        ("M=3 N=5 bfloat16 all strided", "layout"),
        ("M=3 N=5 minus inf row in x", "special"),
        ("M=3 N=5 called again", "repeat"),
    ],
)
def test_a_name_makes_a_case_of_any_allowed_sizes(name: str, group: str) -> None:
    case = again(name, X, DIMS)
    assert (case.name, case.group, case.dims) == (name, group, {"M": 3, "N": 5})
    assert tensor(case, "x").shape == (3, 5)
    like = next(other for other in planned() if other.label == case.label)
    for trait in ("dtype", "layout", "fill"):
        assert getattr(tensor(case, "x"), trait) == getattr(tensor(like, "x"), trait)
    assert case.again_after == ("M=3 N=5" if group == "repeat" else None)


def test_sizes_in_another_order_name_the_same_case() -> None:
    (sliced,) = (case for case in planned() if case.name == "M=7 N=64 x sliced")
    assert again(" N=64  M=7 x sliced", X, DIMS) == sliced


def test_a_tenfold_constant_is_made_again_at_any_sizes() -> None:
    case = again("M=3 N=5 eps x 10", {**X, "eps": 1e-5}, DIMS)
    (eps,) = (item for item in case.arguments if item.form == "constant")
    assert (case.group, eps.value) == ("option", pytest.approx(1e-4))
    assert again("eps x 10", {"eps": 1.0}, {}).name == "eps x 10"


def test_a_case_of_random_sizes_is_made_again_without_its_seed() -> None:
    declaration = parse_declaration(X, DIMS)
    cases = plan_cases(declaration, limit_elements=LIMIT, seed=7).cases
    at_random = [case for case in cases if case.group == "random_sizes"]
    assert len(at_random) == 3
    for case in at_random:
        alone = case_for(declaration, case.name, limit_elements=LIMIT)
        assert alone == case.model_copy(update={"group": "requested"})
        assert case_for(declaration, case.name, limit_elements=LIMIT, seed=7) == case


def test_cases_without_dimensions_and_without_inputs_of_ours_are_made_again() -> None:
    assert again("base", {"x": "float32[4]"}, {}).group == "declared"
    assert again("base called again", {"x": "float32[4]"}, {}).again_after == "base"
    assert again("x offset", {"x": "float32[4]"}, {}).label == "x offset"
    assert again("M=8", {}, {"M": [8]}).arguments == ()
    assert again("M=5", {}, {"M": [8]}).dims == {"M": 5}


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("M=7 N=64 x transpsed", "No case has the label 'x transpsed'.", "M=7 N=64 x transposed"),
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
        ("M=7 N=64 inf in e", "inf in e is left out: float8_e4m3fn has no infinity.", "nan in e"),
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
    with pytest.raises(BadInput, match="sets no memory aside"):
        case_for(declaration, "M=8 x rows far apart", limit_elements=LIMIT)
