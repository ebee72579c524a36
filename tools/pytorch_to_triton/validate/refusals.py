"""Cases that one side refuses, tried again without what it refuses: nothing else about them goes untested."""

from collections.abc import Iterator, Mapping, Sequence

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.plan import PlanBuilder, parts_of


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
