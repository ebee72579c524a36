"""A reference that fails at the middle of what is declared is the caller's mistake; at a corner it is not."""

from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, NoResult
from pytorch_to_triton.validate.ready_plan import (
    refuse_empty,
    refuse_unrunnable_reference,
    without_refused_combinations,
)

from .plans import plan_cases

REFERENCE = Target(path=Path("/a/ref.py"), name="f")
RAISED = "The reference raised ValueError at ref.py:6: bad shape"


def result(
    name: str, status: CaseStatus, why: str = RAISED, reason: NoResult | None = "raised"
) -> CaseResult:
    return CaseResult(name=name, group="declared", status=status, why=why, reason=reason)


@pytest.mark.parametrize(
    ("reason", "why", "hint"),
    [
        ("raised", RAISED, "Correct the function"),
        ("crashed", "The reference ended its process: killed by SIGSEGV", "crashes the process"),
        ("timed_out", "The reference did not return within 4 s", "--timeout"),
    ],
)
def test_a_reference_that_fails_at_the_middle_is_refused_with_case_and_cause(
    reason: NoResult, why: str, hint: str
) -> None:
    results = [result("N=8", "reference_raised", why, reason), result("N=3", "passed", "", None)]
    with pytest.raises(TargetBroken) as refusal:
        refuse_unrunnable_reference(results, REFERENCE)
    assert f"ref.py:f cannot be used. {why}" in refusal.value.message
    assert "at N=8 and in 1 of 2 declared cases" in refusal.value.message
    assert hint in refusal.value.hint
    assert refusal.value.exit_code == 2


def test_a_reference_that_fails_at_a_corner_is_left_to_the_verdict() -> None:
    results = [result("N=8", "passed", "", None), result("N=1", "reference_raised")]
    refuse_unrunnable_reference(results, REFERENCE)


def test_a_case_that_was_requested_by_name_is_left_to_the_verdict() -> None:
    refuse_unrunnable_reference([result("N=1", "reference_raised")], REFERENCE, ("N=1",))


@pytest.mark.parametrize("reason", ["not_run", "no_gradient"])
def test_what_is_not_about_the_reference_s_own_code_is_left_to_the_verdict(reason: NoResult) -> None:
    refuse_unrunnable_reference([result("N=8", "reference_raised", reason=reason)], REFERENCE)


def test_a_plan_without_a_case_is_refused_with_the_reason() -> None:
    declaration = parse_declaration({"x": "float32[100000, 1000]"}, {}, [])
    with pytest.raises(BadInput, match="100,000,000 elements are over this run's limit of 2,097,152"):
        refuse_empty(plan_cases(declaration, limit=2**21))
    refuse_empty(plan_cases(declaration, limit=2**27))


def test_declared_sizes_that_pytorch_refuses_only_together_are_left_out() -> None:
    cases = plan_cases(parse_declaration({"x": "float32[M, N]"}, {"M": "1,4", "N": "1,8"}, [])).cases
    first, *others = (case.name for case in cases if case.group == "declared")
    assert [first, *others] == ["M=4 N=8", "M=1 N=8", "M=4 N=1", "M=1 N=1"]

    def judged(*refused: str) -> list[str]:
        results = [
            result(name, "reference_raised") if name in refused else result(name, "passed", "", None)
            for name in (first, *others)
        ]
        return [each.status for each in without_refused_combinations(results, cases)]

    assert judged("M=1 N=1") == ["passed", "passed", "passed", "skipped"]
    assert judged("M=1 N=8", "M=1 N=1") == ["passed", "reference_raised", "passed", "reference_raised"]
