"""How a call ended that has no result: a code, a reason for a person, and what stopped it."""

import pytest

from pytorch_to_triton.schema.verdict import NoResult
from pytorch_to_triton.validate.run_outcome import OK, outcome_of_exception
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.observation import SandboxViolation


def failure(kind: str = "ValueError", message: str = "no rows", line: int | None = 3) -> Failure:
    file = "/a/k.py" if line else None
    return Failure(type=kind, message=message, traceback="", file=file, line=line)


def violation(what: str, line: int) -> SandboxViolation:
    return SandboxViolation(kind="touches_files", what=what, file="/a/k.py", line=line)


def test_an_exception_is_described_with_its_type_line_and_message() -> None:
    outcome = outcome_of_exception(failure())
    assert (outcome.reason, outcome.status) == ("raised", "raised")
    assert outcome.why == "raised ValueError at k.py:3: no rows"
    assert outcome_of_exception(failure(line=None)).why == "raised ValueError: no rows"
    assert OK.status is None


def test_of_an_error_of_cuda_only_the_first_line_is_kept() -> None:
    assert outcome_of_exception(
        failure(message="CUDA error: out of luck\nPass CUDA_LAUNCH_BLOCKING=1")
    ).why.endswith("luck")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("NoGradient", "no_gradient"),
        ("ReferenceWithheld", "reference_withheld"),
        ("SandboxRefusal", "sandbox_violation"),
    ],
)
def test_the_workers_own_exceptions_have_reasons_of_their_own(kind: str, reason: NoResult) -> None:
    violations = [violation("opens /x", 3)] if reason == "sandbox_violation" else []
    outcome = outcome_of_exception(failure(kind), violations)
    assert (outcome.reason, outcome.status) == (reason, "raised")


def test_a_refusal_is_put_down_to_the_violation_at_its_line_else_to_the_last() -> None:
    found = [violation("opens /x", 3), violation("opens /y", 9)]
    assert outcome_of_exception(failure("SandboxRefusal"), found).stopped_by == found[0]
    assert outcome_of_exception(failure("SandboxRefusal", line=5), found).stopped_by == found[1]


def test_the_interpreter_wraps_a_refusal_and_also_other_errors() -> None:
    found = [violation("opens /x", 9)]
    assert outcome_of_exception(failure("InterpreterError", line=9), found).reason == "sandbox_violation"
    assert outcome_of_exception(failure("InterpreterError"), found).stopped_by is None
    assert outcome_of_exception(failure(line=9), found).stopped_by is None
