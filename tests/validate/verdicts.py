"""Reading verdicts."""

from collections.abc import Awaitable, Callable

from pytorch_to_triton.schema.verdict import CaseResult, Mismatch, Verdict, Violation

Judge = Callable[..., Awaitable[Verdict]]
"""Validates a file: its path, perhaps a name in it, and fields of a Request."""
ANY = frozenset({"any"})
"""For `allow_torch`: the candidate is plain PyTorch."""


def case(verdict: Verdict, name: str) -> CaseResult:
    return next(result for result in verdict.cases if result.name == name)


def most_wrong(verdict: Verdict) -> tuple[CaseResult, Mismatch]:
    """The failed case that the summary shows."""
    result = next(r for r in verdict.cases if f"For example, {r.name}: " in verdict.summary)
    return result, result.mismatches[0]


def violations(verdict: Verdict) -> dict[str, Violation]:
    """The first violation of each kind, in a case or of the whole process."""
    found = [*verdict.violations, *(v for result in verdict.cases for v in result.violations)]
    return {violation.kind: violation for violation in reversed(found)}


def statuses(verdict: Verdict) -> set[str]:
    return {result.status for result in verdict.cases}
