"""Cases that are tried once more: without what a side refuses, or with what autotuned kernels try undone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.conclusion import most_telling, wrong_of
from pytorch_to_triton.validate.phrases import listed
from pytorch_to_triton.validate.plan import PlanBuilder, parts_of
from pytorch_to_triton.validate.trial import JudgedCase, ValidationTrial
from pytorch_to_triton.worker.wire.observation import Observation


async def retry_milder(
    trial: ValidationTrial, plan: PlanBuilder, cases: Sequence[Case], judged: Sequence[JudgedCase]
) -> tuple[list[Case], list[JudgedCase], dict[str, Case]]:
    """The cases with those that stand for refused ones, as they were judged; and which stand for which."""
    run, results, milder = list(cases), list(judged), dict[str, Case]()
    latest: Sequence[Case] = cases
    while latest:
        names = {case.name for case in latest}
        milder_cases = milder_of(plan, latest, [case.result for case in results if case.result.name in names])
        milder |= milder_cases
        further = {case.name: case for case in milder_cases.values()}
        run_names = {case.name for case in run}
        latest = [case for name, case in further.items() if name not in run_names]
        results += await trial.run(latest) if latest else []
        run += latest
    return run, results, milder


def milder_of(plan: PlanBuilder, cases: Sequence[Case], results: Sequence[CaseResult]) -> dict[str, Case]:
    """By the name of each combined case that was refused, one that asks for less."""
    refused = {result.name for result in results if is_refused(result)}
    combined = [case for case in cases if case.name in refused and case.group == "combined"]
    return {case.name: milder for case in combined for milder in milder_cases(plan, case)}


def with_blame(results: Sequence[CaseResult], milder: Mapping[str, Case]) -> list[CaseResult]:
    """The results; what a milder case is refused for as well, the first one was refused for."""
    limits = {result.name: result.limit for result in results}

    def blamed(result: CaseResult) -> CaseResult:
        other = limits.get(milder[result.name].name) if result.name in milder else None
        if result.limit is None or other is None or other.what != result.limit.what:
            return result
        return result.model_copy(update={"limit": other})

    # The mildest come last, and know best.
    corrected = []
    for result in reversed(results):
        corrected.append(blamed(result))
        limits[result.name] = corrected[-1].limit
    return corrected[::-1]


def is_refused(result: CaseResult) -> bool:
    """Whether a side raised in place of returning."""
    return result.reason == "raised" and result.status in ("limited", "raised", "skipped", "reference_raised")


def milder_cases(plan: PlanBuilder, case: Case) -> Iterator[Case]:
    """The case in contiguous memory; of one that is so already, at the base's sizes."""
    parts = parts_of(case.label)
    contiguous = [part for part in parts if plan.labels[part][0] != "layout"]
    point = case.dims if contiguous != parts else plan.base
    milder = plan.combined(point, contiguous)
    if milder is not None and milder.name != case.name:
        yield milder


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
