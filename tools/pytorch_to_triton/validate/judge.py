"""From what was measured and seen in a case to its result. Pure: statistics in, values out."""

from dataclasses import dataclass

from pytorch_to_triton.schema.case import Case, Group
from pytorch_to_triton.schema.verdict import Breach, CaseResult, CaseStatus, OutputFigures, Violation
from pytorch_to_triton.validate.conduct import Policy, accesses_of, violations_of
from pytorch_to_triton.validate.mismatch import mismatches_of
from pytorch_to_triton.validate.observation import Observation
from pytorch_to_triton.validate.statistics import CaseStatistics, OutputStatistics

CLAIMED: tuple[Group, ...] = ("declared", "reduced", "dtype")
"""Groups of cases that the declaration asks for; the others are generated."""


@dataclass(frozen=True)
class Attempt:
    """What came of running one side on one case: `ok`, or how it ended and why."""

    status: CaseStatus | None
    """None: it returned."""
    why: str = ""


OK = Attempt(status=None)
NO_POLICY = Policy()
MEMORY: tuple[Breach, ...] = ("load_outside", "store_outside", "race", "overrun")
"""Breaches that may be why a candidate did not return."""
INPUTS_CHANGED = Violation(
    breach="inputs_changed",
    says="The files that hold the inputs were changed while the candidate ran.",
    instead="Keep to the tensors that run is given.",
)


def reference_failed(case: Case, why: str) -> CaseResult:
    """The reference has no result: a declared case stays open, a generated one is left out."""
    status: CaseStatus = "reference_raised" if case.group in CLAIMED else "skipped"
    return CaseResult(name=case.name, group=case.group, status=status, why=f"The reference {why}")


def candidate_failed(
    case: Case, attempt: Attempt, seen: Observation | None = None, policy: Policy = NO_POLICY
) -> CaseResult:
    """The candidate did not return."""
    assert attempt.status is not None
    if case.group == "option" and attempt.status == "raised":
        why = f"The candidate takes no other value: {attempt.why}"
        return CaseResult(name=case.name, group=case.group, status="skipped", why=why)
    violations = violations_of(case, seen, policy) if seen else ()
    memory = [violation.says for violation in violations if violation.breach in MEMORY]
    why = " ".join([attempt.why + "." * bool(memory and not attempt.why.endswith(".")), *memory])
    return CaseResult(name=case.name, group=case.group, status=attempt.status, why=why, violations=violations)


def judge_case(
    case: Case, statistics: CaseStatistics, seen: Observation | None = None, policy: Policy = NO_POLICY
) -> CaseResult:
    """Passed, failed with its mismatches and violations, or skipped where PyTorch's own result is no help."""
    mismatches = mismatches_of(statistics)
    violations = violations_of(case, seen, policy) if seen else ()
    if not statistics.inputs_untouched:
        violations = (INPUTS_CHANGED, *violations)
    untrusted = [output.path for output in statistics.outputs if is_untrusted(output)]
    corrupting = [v.says for v in violations if v.breach in MEMORY]
    others = [v.says for v in violations if v.breach not in MEMORY]
    wrong = [*corrupting, *(m.says for m in mismatches), *others]
    status: CaseStatus = "failed" if wrong else "skipped" if untrusted else "passed"
    why = " ".join(wrong)
    if status == "skipped":
        why = f"PyTorch's own {', '.join(untrusted)} is too far from the float64 result to judge by."
    return CaseResult(
        name=case.name,
        group=case.group,
        status=status,
        why=why,
        outputs=tuple(figures(output) for output in statistics.outputs if not output.differs),
        mismatches=mismatches,
        violations=violations,
        truth=statistics.truth,
        accesses=accesses_of(case, seen) if seen else (),
    )


def is_untrusted(output: OutputStatistics) -> bool:
    """Most of what PyTorch itself returned cannot be trusted."""
    return output.unjudged * 2 > output.elements


def figures(output: OutputStatistics) -> OutputFigures:
    return OutputFigures(
        path=output.path,
        dtype=output.pytorch.dtype or output.pytorch.type,
        shape=output.pytorch.shape or (),
        elements=output.elements,
        failing=output.failing,
        unjudged=output.unjudged,
        candidate_error=output.candidate_error,
        pytorch_error=output.pytorch_error,
        allowed_error=output.allowed_error,
        constant=output.constant,
        meets_strict=output.meets_strict,
        meets_loose=output.meets_loose,
    )
