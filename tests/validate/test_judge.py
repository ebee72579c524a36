"""The result of one case, from what was measured and observed."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.verdict import NoResult
from pytorch_to_triton.validate.conclusion import next_step_of
from pytorch_to_triton.validate.judge import (
    candidate_failed,
    judge_case,
    reference_failed,
)
from pytorch_to_triton.validate.notes import notes_on
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.run_outcome import RunOutcome
from pytorch_to_triton.worker.wire.observation import Differs, Observation
from pytorch_to_triton.worker.wire.statistics import CaseStatistics

from .builders import FAULT, LAUNCH, TENSOR, output, statistics

CORRUPTS_AND_CHEATS = Observation(launches=(LAUNCH,), faults=(FAULT,), operators={"aten.mm": 1})


def case(group: Group = "declared", name: str = "N=8") -> Case:
    x = TensorArgument(name="x", dtype="float32", shape=(8,))
    return Case(name=name, group=group, dims={"N": 8}, arguments=(x,))


def measured(*, inputs_untouched: bool = True, truth: str = "float64", **figures: Any) -> CaseStatistics:
    return statistics(output(**figures), truth=truth, inputs_untouched=inputs_untouched)


RAISED = RunOutcome("raised", "raised.")
WRONG_DTYPE: dict[str, Any] = {"differs": "dtype", "candidate": replace(TENSOR, dtype="float16")}


def test_a_case_without_failing_elements_passes_with_its_figures() -> None:
    judged = judge_case(
        case(), measured(candidate_error=1.5, pytorch_error=1.0, allowed_error=10.0, meets_strict=False)
    )
    assert judged.status == "passed"
    assert judged.why == ""
    assert judged.outputs[0].candidate_error == 1.5
    assert (judged.outputs[0].meets_strict, judged.outputs[0].meets_loose) == (False, True)
    assert judged.truth == "float64"


def test_what_the_truth_was_computed_in_is_kept() -> None:
    assert judge_case(case(), measured(truth="float32")).truth == "float32"


def test_a_case_where_pytorch_itself_is_not_finite_is_skipped() -> None:
    judged = judge_case(case(), measured(unjudged=5))
    assert judged.status == "skipped"
    assert judged.why == "PyTorch's out is not finite where the float64 result is finite, or the reverse."


def test_an_element_that_neither_pytorch_nor_the_truth_confirms_leaves_a_case_undecided() -> None:
    judged = judge_case(case(), measured(unjudged=1, unconfirmed=1))
    assert judged.status == "undecided"
    assert judged.outputs[0].unconfirmed == 1
    assert judged.why == (
        "In 1 of 8 elements of out, PyTorch's result is too far from the float64 result to judge by, and the "
        "candidate matches neither."
    )


def test_a_candidate_that_rounds_as_pytorch_does_passes_however_far_the_truth_is() -> None:
    judged = judge_case(case(), measured(unjudged=8, as_pytorch=8))
    assert judged.status == "passed"
    [note] = notes_on([judged])
    assert note.startswith("In 1 case, such as N=8, ")
    assert [*notes_on([judge_case(case(), measured())])] == []


def test_a_candidate_may_be_better_than_pytorch_in_rare_elements_only() -> None:
    few = measured(elements=640, unjudged=64, as_truth=64)
    many = measured(elements=640, unjudged=65, as_truth=65)
    assert judge_case(case(), few).status == "passed"
    assert judge_case(case(), many).status == "undecided"
    assert "In 65 of 640 elements" in judge_case(case(), many).why
    assert "the candidate matches float64" in judge_case(case(), many).why


def test_a_few_untrusted_elements_do_not_hide_the_others() -> None:
    assert judge_case(case(), measured(unjudged=3)).status == "passed"


def test_violations_fail_a_case_whose_values_cannot_be_trusted() -> None:
    judged = judge_case(case(), measured(unjudged=8), CORRUPTS_AND_CHEATS)
    assert judged.status == "failed"
    assert "not finite" not in judged.why


def test_memory_comes_before_values_and_values_before_other_rules() -> None:
    judged = judge_case(case(), measured(**WRONG_DTYPE), CORRUPTS_AND_CHEATS)
    assert judged.status == "failed"
    [mismatch] = judged.mismatches
    outside, operator = judged.violations
    assert (outside.kind, operator.kind) == ("store_outside", "torch_operator")
    assert judged.why == f"{outside.message} {mismatch.message} {operator.message}"


def test_right_values_do_not_excuse_what_was_seen_but_a_policy_does() -> None:
    seen = replace(CORRUPTS_AND_CHEATS, faults=())
    assert judge_case(case(), measured(), seen).status == "failed"
    assert judge_case(case(), measured(), seen, Policy(frozenset({"mm"}))).status == "passed"


def test_values_that_are_wrong_in_another_order_of_programs_alone_are_said_to_depend_on_it() -> None:
    launch = replace(LAUNCH, atomics=True)
    seen = Observation(launches=(launch,), differs=Differs(paths=("out",), by="order"))
    wrong = measured(**WRONG_DTYPE)
    first = judge_case(case(), replace(wrong, right_at_first=True), seen)
    assert [violation.kind for violation in first.violations] == ["depends_on_order"]
    assert first.why.startswith("out depends on the order in which programs run")
    assert judge_case(case(), wrong, seen).violations == ()
    assert judge_case(case(), measured(), seen).status == "passed"


def test_inputs_that_were_changed_on_disk_fail_the_case() -> None:
    judged = judge_case(case(), measured(inputs_untouched=False), Observation(launches=(LAUNCH,)))
    assert judged.status == "failed"
    assert [violation.kind for violation in judged.violations] == ["inputs_changed"]
    assert "The files that hold the inputs were changed" in judged.why
    assert judge_case(case(), measured(inputs_untouched=False)).status == "failed"


@pytest.mark.parametrize("group", get_args(Group))
def test_a_reference_that_fails_leaves_a_declared_case_open_and_skips_a_generated_one(group: Group) -> None:
    status = "reference_raised" if group in ("declared", "reduced", "dtype", "value") else "skipped"
    assert reference_failed(case(group), RAISED).status == status


def test_a_candidate_that_crashes_after_corrupting_memory_keeps_both_reasons() -> None:
    judged = candidate_failed(case(), RunOutcome("crashed", "ended its process."), CORRUPTS_AND_CHEATS)
    assert judged.status == "crashed"
    assert judged.why == f"ended its process. {judged.violations[0].message}"
    assert [violation.kind for violation in judged.violations] == ["store_outside", "torch_operator"]


@pytest.mark.parametrize("reason", ["crashed", "timed_out", "raised"])
def test_a_candidate_that_does_not_return_is_not_said_to_launch_nothing(reason: NoResult) -> None:
    judged = candidate_failed(case(), RunOutcome(reason, "ended its process."), Observation())
    assert (judged.status, judged.reason, judged.violations) == (reason, reason, ())
    assert judged.why == "ended its process."
    assert next_step_of("failed", [judged]).startswith("Fix the kernel so that it returns")
