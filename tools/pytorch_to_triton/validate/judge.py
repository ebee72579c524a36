"""From what was measured and seen in a case to its result. Pure: statistics in, values out."""

from collections.abc import Iterable, Mapping, Sequence

from pytorch_to_triton.inputs.case import Case, ConstantArgument
from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, OutputFigures, Violation, ViolationKind
from pytorch_to_triton.validate.behavior import (
    accesses_of,
    of_second_run,
    refused_violation,
    violation,
    violations_of,
)
from pytorch_to_triton.validate.limits import UNLAUNCHED, UNMADE, other_dtype, refusal
from pytorch_to_triton.validate.mismatch import mismatches_of
from pytorch_to_triton.validate.phrases import sentence
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.run_outcome import RunOutcome
from pytorch_to_triton.worker.wire.observation import Observation
from pytorch_to_triton.worker.wire.statistics import CaseStatistics, OutputStatistics, Run

RARE = 10
"""Where PyTorch is far off in at most one element of so many, such as a row or two, it rounded badly, and the
truth will do."""
ENDING = ": declare the values for which it ends, such as `in -8..8`"
"""Behind what is said of a reference that does not return."""
NO_POLICY = Policy()
MEMORY: tuple[ViolationKind, ...] = (
    "load_outside", "store_outside", "race", "missing_barrier", "false_promise", "depends_on_order",
    "wrong_without_gradients", "wrong_gradients_apart", "overrun",
)  # fmt: skip
"""Violations that may be why a candidate did not return, or is wrong."""
INPUTS_CHANGED = violation(
    "inputs_changed", "The files that hold the inputs were changed while the candidate ran."
)
OF_RUN: Mapping[Run, Violation] = {
    "without_gradients": violation(
        "wrong_without_gradients",
        "Right where gradients are asked for, its results are wrong under torch.no_grad(), on the same "
        "values.",
    ),
    "gradients_apart": violation(
        "wrong_gradients_apart",
        "Right where all gradients are asked for at once, its gradients are wrong where each is asked for "
        "alone, after another forward pass.",
    ),
}
"""What it is to be right in the first run, and wrong in this one."""


def in_order_of_weight(violations: Sequence[Violation], others: Iterable[str]) -> str:
    """What is wrong, in sentences: violations that may be why the `others` are come before them."""
    corrupting = [violation.message for violation in violations if violation.kind in MEMORY]
    further = [violation.message for violation in violations if violation.kind not in MEMORY]
    return " ".join(filter(None, (*corrupting, *others, *further)))


def reference_failed(case: Case, outcome: RunOutcome) -> CaseResult:
    """The reference has no result: a declared case stays open, a generated one is left out.

    If the worker itself failed, the case is lost and counts for neither side.
    """
    status: CaseStatus = "reference_raised" if case.group in DECLARED_GROUPS else "skipped"
    if outcome.status == "lost":
        status = "lost"
    advice = ENDING if outcome.reason == "timed_out" else ""
    return CaseResult(
        name=case.name,
        group=case.group,
        status=status,
        why=f"The reference {outcome.why}{advice}",
        reason=outcome.reason,
    )


def candidate_failed(
    case: Case, outcome: RunOutcome, observation: Observation | None = None, policy: Policy = NO_POLICY
) -> CaseResult:
    """The candidate did not return, so what it had not launched by then counts for nothing."""
    assert outcome.status is not None
    every = violations_of(case, observation, policy) if observation else ()
    violations = tuple(violation for violation in every if violation.kind not in UNLAUNCHED)
    limit = refusal(case, outcome.failure, violations) if outcome.failure else None
    # What a case that cannot be judged has shown by then stands.
    status = "failed" if violations and outcome.status == "skipped" else outcome.status
    memory = [violation.message for violation in violations if violation.kind in MEMORY]
    return CaseResult(
        name=case.name,
        group=case.group,
        status="limited" if limit else status,
        why=" ".join([sentence(outcome.why), *memory]) if memory else outcome.why,
        reason=outcome.reason,
        stopped_by=refused_violation(outcome.stopped_by) if outcome.stopped_by else None,
        violations=violations,
        configurations=observation.configurations if observation else (),
        limit=limit,
    )


def judge_case(
    case: Case, statistics: CaseStatistics, observation: Observation | None = None, policy: Policy = NO_POLICY
) -> CaseResult:
    """The result of a case in which both sides returned.

    Failed with its mismatches and violations; limited where only a dtype differs that no declaration spells
    out; undecided where neither PyTorch nor the truth confirms what the candidate has; skipped where both
    are no help.
    """
    mismatches = mismatches_of(statistics, known_numbers(case))
    violations = violations_of(case, observation, policy) if observation else ()
    if any(mismatch.kind == "unwritten" for mismatch in mismatches):
        # Nobody else wrote it either: a kernel that stores nothing here is no more than wrong.
        violations = tuple(v for v in violations if v.kind not in UNMADE)
    elif not mismatches:
        # A mask may leave nothing to store, as below the diagonal of one element.
        violations = tuple(v for v in violations if v.kind != "stores_nothing")
    if mismatches and statistics.right_at_first:
        if observation and observation.differs and observation.differs.by in ("order", "reading"):
            violations = tuple(dict.fromkeys((of_second_run(observation.differs), *violations)))
        if any(violation.kind == "reads_past_torch" for violation in violations):
            mismatches = ()  # what was made of noise
        if statistics.run in OF_RUN:
            violations = (OF_RUN[statistics.run], *violations)
    if not statistics.inputs_untouched:
        violations = (INPUTS_CHANGED, *violations)
    limit = other_dtype(case, statistics)
    if limit is not None and violations:
        limit, mismatches = None, ()
    why = in_order_of_weight(violations, [mismatch.message for mismatch in mismatches])
    status: CaseStatus = "limited" if limit is not None else "failed"
    if limit is None and not why:
        status, why = status_without_faults(statistics)
    return CaseResult(
        name=case.name,
        group=case.group,
        status=status,
        why=why,
        outputs=tuple(figures(output) for output in statistics.outputs if not output.differs),
        mismatches=mismatches,
        violations=violations,
        truth=statistics.truth,
        accesses=accesses_of(case, observation) if observation else (),
        configurations=observation.configurations if observation else (),
        limit=limit,
    )


def known_numbers(case: Case) -> dict[str, float]:
    """The sizes and the numbers that a case is called with, by name."""
    constants = (argument for argument in case.arguments if isinstance(argument, ConstantArgument))
    numbers = {c.name: c.value for c in constants if isinstance(c.value, int | float)}
    return {**case.dims, **numbers}


def status_without_faults(statistics: CaseStatistics) -> tuple[CaseStatus, str]:
    """Passed, or why a case in which nothing is wrong has not passed."""
    for output in statistics.outputs:
        if output.unconfirmed:
            return "undecided", apart(output, output.unconfirmed, "the candidate matches neither")
        if output.as_truth * RARE > output.elements and is_floating(output):
            return "undecided", apart(output, output.as_truth, "the candidate matches float64")
    if untrusted := [output for output in statistics.outputs if is_untrusted(output)]:
        paths = ", ".join(output.path for output in untrusted)
        why = f"PyTorch's {paths} is not finite where the float64 result is finite, or the reverse."
        if not any(map(is_floating, untrusted)):
            why = f"Rounding alone decides most of {paths}, in PyTorch as well."
        return "skipped", why
    return "passed", ""


def apart(output: OutputStatistics, count: int, message: str) -> str:
    return (
        f"In {count} of {output.elements} elements of {output.path}, PyTorch's result is too far from the "
        f"float64 result to judge by, and {message}."
    )


def is_floating(output: OutputStatistics) -> bool:
    return "float" in (output.pytorch.dtype or "")


def is_untrusted(output: OutputStatistics) -> bool:
    """Most of what PyTorch itself returned can neither be trusted nor was confirmed in another way."""
    return (output.unjudged - output.as_pytorch - output.as_truth) * 2 > output.elements


def figures(output: OutputStatistics) -> OutputFigures:
    names = OutputFigures.model_fields.keys() - {"dtype", "shape", "confirmed"}
    return OutputFigures(
        **{name: getattr(output, name) for name in names},
        dtype=output.pytorch.dtype or output.pytorch.type,
        shape=output.pytorch.shape or (),
        confirmed=output.as_pytorch + output.as_truth,
    )
