"""When a validation has passed, failed, or cannot tell."""

from typing import Any

import pytest

from pytorch_to_triton.schema.case import Case, Group
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, Mismatch
from pytorch_to_triton.validate.judge import (
    Attempt,
    candidate_failed,
    decide,
    judge_case,
    next_step_of,
    reference_failed,
    summary_of,
)
from pytorch_to_triton.validate.statistics import CaseStatistics, OutputStatistics, Traits

TENSOR = Traits(type="Tensor", dtype="float32", shape=(8,), device="cpu")


def case(group: Group = "declared", name: str = "N=8") -> Case:
    return Case(name=name, group=group, dims={"N": 8}, arguments=())


def result(group: Group, status: CaseStatus, **fields: Any) -> CaseResult:
    return CaseResult(**{"name": group, "group": group, "status": status, "why": "It is so.", **fields})


def measured(**figures: Any) -> CaseStatistics:
    output = OutputStatistics(
        **{
            "path": "out",
            "differs": None,
            "candidate": TENSOR,
            "pytorch": TENSOR,
            "elements": 8,
            "failing": 0,
            **figures,
        }
    )
    return CaseStatistics(case="N=8", missing=(), extra=(), outputs=(output,))


def test_a_case_without_failing_elements_passes_with_its_figures() -> None:
    judged = judge_case(
        case(), measured(candidate_error=1.5, pytorch_error=1.0, allowed_error=10.0), "float64"
    )
    assert judged.status == "passed"
    assert judged.why == ""
    assert judged.outputs[0].candidate_error == 1.5
    assert judged.truth == "float64"


def test_a_case_where_pytorch_itself_is_wrong_is_skipped() -> None:
    judged = judge_case(case(), measured(unjudged=5), "float64")
    assert judged.status == "skipped"
    assert "too far from the float64 result" in judged.why


def test_a_few_untrusted_elements_do_not_hide_the_others() -> None:
    assert judge_case(case(), measured(unjudged=3), "float64").status == "passed"


@pytest.mark.parametrize("group", ["declared", "reduced", "dtype"])
def test_a_reference_that_fails_where_it_should_work_leaves_the_case_open(group: Group) -> None:
    assert reference_failed(case(group), "raised.").status == "reference_raised"


@pytest.mark.parametrize("group", ["odd", "one", "empty", "layout", "special"])
def test_a_reference_that_fails_on_a_generated_case_skips_it(group: Group) -> None:
    assert reference_failed(case(group), "raised.").status == "skipped"


def test_a_candidate_that_does_not_return_keeps_its_reason() -> None:
    judged = candidate_failed(case("empty"), Attempt("timed_out", "did not return within 5 s"))
    assert (judged.status, judged.why) == ("timed_out", "did not return within 5 s")


@pytest.mark.parametrize(
    ("results", "decision"),
    [
        ([("declared", "passed"), ("odd", "passed")], "passed"),
        ([("declared", "passed"), ("empty", "skipped")], "passed"),
        ([("declared", "passed"), ("empty", "crashed")], "failed"),
        ([("declared", "passed"), ("special", "timed_out")], "failed"),
        ([("declared", "raised"), ("declared", "reference_raised")], "failed"),
        ([("declared", "passed"), ("dtype", "reference_raised")], "undecided"),
        ([("declared", "passed"), ("declared", "skipped")], "undecided"),
        ([("odd", "passed")], "undecided"),
        ([], "undecided"),
    ],
)
def test_the_decision_follows_from_the_cases(results: list[tuple[Group, CaseStatus]], decision: str) -> None:
    assert decide([result(group, status) for group, status in results]) == decision


def mismatch(**fields: Any) -> Mismatch:
    told = {"output": "out", "where": "everywhere", "says": "out is wrong.", "first": None}
    return Mismatch(**{**told, "kind": "values", "causes": ("One cause.",), **fields})


def test_the_summary_tells_the_most_telling_case() -> None:
    results = [
        result("declared", "failed", name="N=8", why="Vague.", mismatches=(mismatch(),)),
        result("declared", "failed", name="N=100", why="Clear.", mismatches=(mismatch(kind="nan_only"),)),
        result("special", "failed", name="inf", why="Odd.", mismatches=(mismatch(kind="infinite"),)),
    ]
    assert summary_of("failed", results) == "Wrong in 3 of 3 cases, as in N=100: Clear."
    assert next_step_of("failed", results).startswith("Likely cause: One cause.")


def test_failures_of_one_generated_group_are_told_by_that_group() -> None:
    results = [result("declared", "passed"), result("layout", "failed", mismatches=(mismatch(),))]
    assert next_step_of("failed", results).startswith("Only other memory layouts fail")


def test_an_undecided_summary_says_what_is_open() -> None:
    results = [result("declared", "reference_raised", name="N=8", why="The reference raised.")]
    assert summary_of("undecided", results) == "Undecided: 0 cases agree, but N=8: The reference raised."
    assert "no declared case could be run" in summary_of("undecided", [])
