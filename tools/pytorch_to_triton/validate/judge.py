"""From what was measured to a verdict. Pure: statistics in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pytorch_to_triton.schema.case import Case, Group
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, Decision, OutputFigures, Where
from pytorch_to_triton.validate.mismatch import mismatches_of
from pytorch_to_triton.validate.statistics import CaseStatistics, OutputStatistics

FACTOR = 2.0
"""A candidate may err twice as much as PyTorch: another order of the same operations easily does."""
SLACK = {
    "float64": 8.0,
    "float32": 8.0,
    "float16": 4.0,
    "bfloat16": 4.0,
    "float8_e4m3fn": 1.0,
    "float8_e5m2": 1.0,
}
"""What a candidate may err beyond that, in units of rounding error: where PyTorch is exact by chance, a right
kernel may still be off by a fast exp (2 units) and a few additions in another order. Shorter dtypes get less:
a good kernel computes in float32 and rounds once, and 8 units of bfloat16 would be 6 %."""
UNTRUSTED = 0.5
"""Relative error of an element of PyTorch's from which on it says nothing about the candidate's."""
CLAIMED: tuple[Group, ...] = ("declared", "reduced", "dtype")
"""Groups of cases that the declaration asks for; the others are generated."""
LOCAL: tuple[Where, ...] = ("tail", "one_index", "every_nth", "range")
ONLY: dict[Group, str] = {
    "layout": "Only other memory layouts fail: pass strides to the kernel, or make its inputs contiguous.",
    "empty": "Only empty inputs fail: return early where there is nothing to do.",
    "one": "Only sizes of one fail: look for a division by N - 1, and for squeeze() without a dimension.",
    "odd": "Only odd sizes fail: mask the last tile of loads and stores, and round the grid up.",
    "dtype": "Only further dtypes fail: take dtypes from the inputs, accumulate in float32, round once.",
}
"""What to say when all wrong cases are of one group."""
WRONG: tuple[CaseStatus, ...] = ("failed", "crashed", "timed_out", "raised")


@dataclass(frozen=True)
class Attempt:
    """What came of running one side on one case: `ok`, or how it ended and why."""

    status: CaseStatus | None
    """None: it returned."""
    why: str = ""


OK = Attempt(status=None)


def budget() -> dict[str, JsonValue]:
    """The error budget in the form that job `compare` takes."""
    return {"factor": FACTOR, "slack": dict(SLACK), "untrusted": UNTRUSTED}


def reference_failed(case: Case, why: str) -> CaseResult:
    """The reference has no result: a declared case stays open, a generated one is left out."""
    status: CaseStatus = "reference_raised" if case.group in CLAIMED else "skipped"
    return CaseResult(name=case.name, group=case.group, status=status, why=f"The reference {why}")


def candidate_failed(case: Case, attempt: Attempt) -> CaseResult:
    """The candidate did not return."""
    assert attempt.status is not None
    return CaseResult(name=case.name, group=case.group, status=attempt.status, why=attempt.why)


def judge_case(case: Case, statistics: CaseStatistics, truth: str) -> CaseResult:
    """Passed, failed with its mismatches, or skipped where PyTorch's own result cannot be trusted."""
    mismatches = mismatches_of(statistics)
    untrusted = [output.path for output in statistics.outputs if is_untrusted(output)]
    status: CaseStatus = "failed" if mismatches else "skipped" if untrusted else "passed"
    why = " ".join(mismatch.says for mismatch in mismatches)
    if status == "skipped":
        why = f"PyTorch's own {', '.join(untrusted)} is too far from the float64 result to judge by."
    return CaseResult(
        name=case.name,
        group=case.group,
        status=status,
        why=why,
        outputs=tuple(figures(output) for output in statistics.outputs if not output.differs),
        mismatches=mismatches,
        truth=truth,
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
    )


def decide(results: Sequence[CaseResult]) -> Decision:
    """Failed by one wrong case; passed when every declared case passed, and there is one."""
    if any(result.status in WRONG for result in results):
        return "failed"
    claimed = [result for result in results if result.group in CLAIMED]
    passed = [result for result in claimed if result.status == "passed"]
    return "passed" if passed and len(passed) == len(claimed) else "undecided"


def summary_of(decision: Decision, results: Sequence[CaseResult]) -> str:
    """The outcome in a sentence or two."""
    passed = [result for result in results if result.status == "passed"]
    wrong = [result for result in results if result.status in WRONG]
    if decision == "failed":
        case = most_telling(wrong)
        return f"Wrong in {len(wrong)} of {len(results)} cases, as in {case.name}: {case.why}"
    if decision == "undecided":
        open_cases = [result for result in results if result.status != "passed" and result.group in CLAIMED]
        reason = (
            f"{open_cases[0].name}: {open_cases[0].why}" if open_cases else "no declared case could be run."
        )
        return f"Undecided: {len(passed)} cases agree, but {reason}"
    outputs = [output for result in passed for output in result.outputs]
    ours = max((output.candidate_error for output in outputs), default=0.0)
    theirs = max((output.pytorch_error for output in outputs), default=0.0)
    skipped = f" ({len(results) - len(passed)} skipped)" if len(results) > len(passed) else ""
    errors = f"{ours:.3g} units of rounding error; PyTorch's own {theirs:.3g}"
    return f"Right in all {len(passed)} cases{skipped}. Largest error: {errors}."


def next_step_of(decision: Decision, results: Sequence[CaseResult]) -> str:
    """What to do about it."""
    if decision == "passed":
        return "Use it; that it is right says nothing yet about its speed."
    if decision == "undecided":
        return "Mend the declared inputs so that the reference runs on each of them, then validate again."
    wrong = [result for result in results if result.status in WRONG]
    groups = {result.group for result in wrong}
    case = most_telling(wrong)
    again = "and validate again with the same seed."
    if len(groups) == 1 and case.group in ONLY:
        return f"{ONLY[case.group]} Mend it {again}"
    if case.mismatches:
        return f"Likely cause: {case.mismatches[0].causes[0]} Mend it {again}"
    return f"Mend the kernel so that it returns on every case, {again}"


def most_telling(wrong: Sequence[CaseResult]) -> CaseResult:
    """Of several wrong cases the one to look at first: declared, of a known kind, in one place, large."""

    def telling(result: CaseResult) -> tuple[bool, bool, bool, int]:
        named = any(mismatch.kind != "values" for mismatch in result.mismatches)
        local = any(mismatch.where in LOCAL for mismatch in result.mismatches)
        return result.group in CLAIMED, named, local, sum(output.elements for output in result.outputs)

    return max(wrong, key=telling)
