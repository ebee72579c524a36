"""How a call ended that has no result to compare.

Texts of exceptions are written by others. What is read from them is read here, once, and carried as a code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.schema.job import Outcome
from pytorch_to_triton.schema.verdict import CaseStatus, NoResult
from pytorch_to_triton.validate.phrases import cut
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.observation import SandboxViolation
from pytorch_to_triton.worker.wire.validation import KERNEL, PROGRAMS

REASONS: dict[str, NoResult] = {
    "NoGradient": "no_gradient",
    "ReferenceWithheld": "reference_withheld",
    "SandboxRefusal": "sandbox_violation",
    "NotEnded": "timed_out",
    "NotInterpreted": "not_interpreted",
}
"""By the names of the worker's own exceptions."""
STATUSES: dict[NoResult, CaseStatus] = {
    "raised": "raised",
    "no_gradient": "raised",
    "reference_withheld": "raised",
    "sandbox_violation": "raised",
    "crashed": "crashed",
    "timed_out": "timed_out",
    "not_run": "skipped",
    "not_interpreted": "skipped",
    "lost": "lost",
}
INTERPRETER_ERROR = "InterpreterError"
"""Triton's interpreter wraps what a kernel raised, and quotes it."""
LONGEST = 400
"""Characters of an exception's text: some hold a whole array."""


@dataclass(frozen=True)
class RunOutcome:
    """How running one side on one case ended."""

    reason: NoResult | None
    """None: it returned."""
    why: str = ""
    """What follows "the candidate" or "the reference": `raised ValueError at k.py:3: no rows`."""
    failure: Failure | None = None
    """The exception, where one was raised."""
    kernel: str = ""
    """The interpreted kernel that ran out of time: `add_kernel (it has a while loop in line 14)`."""
    stopped_by: SandboxViolation | None = None
    """The violation that was refused by this exception."""

    @property
    def status(self) -> CaseStatus | None:
        """Of a candidate's case that ended like this."""
        return STATUSES[self.reason] if self.reason else None


OK = RunOutcome(reason=None)


def without_answer(outcome: Outcome, seconds: float) -> RunOutcome:
    """A request whose process has ended."""
    if outcome.status == "timed_out":
        kernel, _, programs = outcome.during.partition(KERNEL)[2].partition(PROGRAMS)
        if programs:
            why = f"cannot be run within {seconds:g} s: the interpreter was through {programs} programs"
            return RunOutcome("not_interpreted", f"{why} of {kernel}", kernel=kernel)
        where = f" in {kernel}" if kernel else ""
        return RunOutcome("timed_out", f"did not return within {seconds:g} s{where}", kernel=kernel)
    if outcome.status == "lost":
        return RunOutcome("lost", f"could not be run: {outcome.detail}")
    return RunOutcome("crashed", f"ended its process: {outcome.detail or 'it returned without a result'}")


def comparison_failed(outcome: Outcome) -> RunOutcome:
    """An exception beside the reference's calls, each of which is caught: neither side is at fault."""
    return RunOutcome("lost", f"could not be compared ({outcome.detail}), which is a defect of this program")


def outcome_of_exception(failure: Failure, violations: Sequence[SandboxViolation] = ()) -> RunOutcome:
    """A call that raised; `violations` are those of its process so far."""
    place = f" at {Path(failure.file).name}:{failure.line}" if failure.file else ""
    # CUDA's errors go on for paragraphs about environment variables.
    message = failure.message.partition("\n")[0] if "CUDA" in failure.message else failure.message
    why = f"raised {failure.type}{place}: {cut(message, LONGEST)}"
    stopped_by = stopping_violation(failure, violations)
    reason = "sandbox_violation" if stopped_by else REASONS.get(failure.type, "raised")
    if reason == "timed_out":
        return RunOutcome(reason, failure.message)
    if reason == "not_interpreted":
        return RunOutcome(reason, f"cannot be run{place}: {cut(message, LONGEST)}")
    return RunOutcome(reason, why, failure, stopped_by=stopped_by)


def stopping_violation(failure: Failure, violations: Sequence[SandboxViolation]) -> SandboxViolation | None:
    """The violation that was refused by this exception; each is reported only when it first happens."""
    here = [v for v in violations if (v.file, v.line) == (failure.file, failure.line)]
    if REASONS.get(failure.type) == "sandbox_violation":
        return next(reversed(here or violations), None)
    return next(reversed(here), None) if failure.type == INTERPRETER_ERROR else None
