"""Whether a case is wrong because of what its autotuned kernels did on trial."""

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.conclusion import most_telling, wrong_of
from pytorch_to_triton.validate.phrases import listed
from pytorch_to_triton.validate.trial import ValidationTrial
from pytorch_to_triton.worker.wire.observation import Observation

CAUSE = (
    "{kernel} runs on trial before the run that counts: name {arguments} in reset_to_zero or restore_value "
    "of triton.autotune."
)
EVIDENCE = "It is right where what autotuned kernels do on trial is undone."


async def with_trials_blamed(
    trial: ValidationTrial, cases: Sequence[Case], results: Sequence[CaseResult]
) -> Sequence[CaseResult]:
    """The results; the cause is named where the case to look at first is right once trials are undone.

    That costs one more call, where such a case is wrong and its kernels are autotuned.
    """
    if not (wrong := wrong_of(results)):
        return results
    telling = most_telling(wrong)
    case = next(case for case in cases if case.name == telling.name)
    # A call after another one found its kernels tuned.
    if not (telling.mismatches and telling.configurations) or case.again_after is not None:
        return results
    (judged,) = await replace(trial, undo_trials=True).run([case])
    causes = causes_of(judged.observation)
    if judged.result.status != "passed" or not causes:
        return results
    return [with_causes(result, causes) if result is telling else result for result in results]


def causes_of(observation: Observation) -> tuple[str, ...]:
    """For each kernel that changes its arguments once more in a second run."""
    return tuple(
        CAUSE.format(kernel=tuned.kernel, arguments=listed(tuned.unsettled))
        for tuned in observation.tuned
        if tuned.unsettled
    )


def with_causes(result: CaseResult, causes: tuple[str, ...]) -> CaseResult:
    """The result with these causes, and without the violations that were consequences of them."""
    mismatches = tuple(mismatch.model_copy(update={"causes": causes}) for mismatch in result.mismatches)
    why = " ".join([*(mismatch.message for mismatch in mismatches), EVIDENCE])
    return result.model_copy(update={"mismatches": mismatches, "violations": (), "why": why})
