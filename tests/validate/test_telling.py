"""Ten cases of a plan come first where a wrong one ends the validation, and they are unlike one another."""

from pytorch_to_triton.inputs.case import tensors_in
from pytorch_to_triton.validate.cases import MOST_ELEMENTS, MOST_TELLING, telling_cases

from .plans import planned

PLAN = planned(
    {"x": "float32|bfloat16[M, N]", "weight": "float32[N]"}, {"M": [1, 20, 70], "N": [1, 40, 5000]}
)


def test_the_most_telling_cases_begin_with_a_plain_one_and_are_of_many_kinds() -> None:
    cases = telling_cases(PLAN.cases)
    assert len(cases) == MOST_TELLING
    assert cases[0] == PLAN.cases[0]
    assert {"bfloat16", "float32"} == {case.dtypes["x"] for case in cases}
    layouts = {tensor.layout for case in cases for tensor in tensors_in(case.arguments)}
    assert {"contiguous", "transposed", "expanded"} <= layouts
    assert any(len(set(case.dims.values())) == 1 for case in cases)
    assert all(case.elements <= MOST_ELEMENTS for case in cases)


def test_what_may_be_a_limit_or_needs_another_case_is_left_for_later() -> None:
    groups = {group for case in telling_cases(PLAN.cases) for group in case.reasons}
    assert not groups & {"large_stride", "mixed", "repeat", "beyond"}


def test_a_plan_of_large_cases_alone_has_one_that_comes_first() -> None:
    large = [case for case in PLAN.cases if case.elements > MOST_ELEMENTS and case.group == "declared"]
    assert telling_cases(large) == large[:1]
    assert telling_cases([]) == []
