"""What is run once more after a plan: what was refused, what runs on trial spoil, what a mistake takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.behavior import BY_SECOND_RUN
from pytorch_to_triton.validate.conclusion import most_telling, wrong_of
from pytorch_to_triton.validate.phrases import listed
from pytorch_to_triton.validate.plan import PlanBuilder, parts_of
from pytorch_to_triton.validate.trial import JudgedCase, ValidationTrial
from pytorch_to_triton.worker.wire.observation import Observation

CAUSE = (
    "{kernel} runs on trial before the run that counts: name {arguments} in reset_to_zero or restore_value "
    "of triton.autotune."
)
EVIDENCE = "It is right where what autotuned kernels do on trial is undone."
SMALL = (1, 2, 3, 5, 17, 33, 65, 129, 257, 513, 1025, 4097)
"""Sizes that each dim is tried at: tiny ones, and those just past a block."""
SHOWN_BY_SECOND_RUN = frozenset(kind for kind, _ in BY_SECOND_RUN.values())
CLEAR = 0.75
"""Cases in which a smaller share than this of the largest is wrong may be so by chance."""


async def retry_milder(
    trial: ValidationTrial, plan: PlanBuilder, cases: Sequence[Case], judged: Sequence[JudgedCase]
) -> tuple[list[Case], list[JudgedCase], dict[str, Case]]:
    """The cases with those that stand for refused ones, as they were judged; and which stand for which."""
    run, results, milder = list(cases), list(judged), dict[str, Case]()
    latest: Sequence[Case] = cases
    while latest:
        refused = {each.result.name for each in results if is_refused(each.result)}
        combined = [case for case in latest if case.name in refused and case.group == "combined"]
        further = {case.name: other for case in combined if (other := milder_case(plan, case)) is not None}
        milder |= further
        names = {case.name for case in run}
        latest = [*{case.name: case for case in further.values() if case.name not in names}.values()]
        results += await trial.run(latest) if latest else []
        run += latest
    return run, results, milder


def with_blame(results: Sequence[CaseResult], milder: Mapping[str, Case]) -> list[CaseResult]:
    """The results; what a milder case is refused for as well, the first one was refused for."""
    limits = {result.name: result.limit for result in results}
    # The mildest come last, and know best.
    for result in reversed(results):
        limit, other = result.limit, limits.get(milder[result.name].name) if result.name in milder else None
        if limit is not None and other is not None and limit.what == other.what:
            limits[result.name] = other
    return [result.model_copy(update={"limit": limits[result.name]}) for result in results]


def is_refused(result: CaseResult) -> bool:
    """Whether a side raised in place of returning."""
    return result.reason == "raised" and result.status in ("limited", "raised", "skipped", "reference_raised")


def milder_case(plan: PlanBuilder, case: Case) -> Case | None:
    """The case in contiguous memory; of one that is so already, at the base's sizes. None: it is that."""
    parts = parts_of(case.label)
    contiguous = [part for part in parts if plan.labels[part][0] != "layout"]
    milder = plan.combined(case.dims if contiguous != parts else plan.base, contiguous)
    return None if milder is not None and milder.name == case.name else milder


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
    mismatches = tuple(mismatch.model_copy(update={"causes": causes}) for mismatch in telling.mismatches)
    why = " ".join([*(mismatch.message for mismatch in mismatches), EVIDENCE])
    # Its violations were consequences of the causes.
    blamed = telling.model_copy(update={"mismatches": mismatches, "violations": (), "why": why})
    return [blamed if result is telling else result for result in results]


def causes_of(observation: Observation) -> tuple[str, ...]:
    """For each kernel that changes its arguments once more in a second run."""
    return tuple(
        CAUSE.format(kernel=tuned.kernel, arguments=listed(tuned.unsettled))
        for tuned in observation.tuned
        if tuned.unsettled
    )


@dataclass(frozen=True)
class Reduction:
    """A case that fails as the telling one does; without any of its conditions it is right."""

    case: Case
    judged: JudgedCase
    right_at: Mapping[str, int]
    """Of the dims whose size is a condition, a size at which the rest is right."""
    declared: Declaration

    @property
    def sentence(self) -> str:
        """What it takes, where that is more than one condition."""
        sizes = [
            f"{dim}={self.case.dims[dim]} (right at {dim}={size}; {self.usual(dim)})"
            for dim, size in self.right_at.items()
        ]
        conditions = [*sizes, *parts_of(self.case.label)]
        return f"It takes {listed(conditions)} together." if len(conditions) > 1 else ""

    def usual(self, dim: str) -> str:
        """The size that the dim has for its user."""
        if dim in self.declared.generated:
            return f"get_inputs() has {self.declared.generated[dim]}"
        return f"declared up to {max(self.declared.dims[dim])}"


async def reduce_failure(
    trial: ValidationTrial, plan: PlanBuilder, cases: Sequence[Case], results: Sequence[CaseResult]
) -> Reduction | None:
    """The mistake of the most telling case, reduced by delta debugging; None where there is none.

    A case that crashes or runs out of time is left as it is.
    """
    wrong = [result for result in wrong_of(results) if result.mismatches or result.violations]
    if not wrong or not plan.declaration.inputs:
        return None
    by_name = {case.name: case for case in cases}
    alike = [result for result in wrong if same_mistake(result, most_telling(wrong))]
    clear = max(map(share_wrong, alike), default=0.0) * CLEAR
    starts = [(by_name[result.name], result) for result in alike if share_wrong(result) >= clear]
    if not starts:
        return None
    case, start = min(starts, key=lambda pair: (len(pair[0].conditions), pair[0].elements))
    if case.again_after or not plan.labels.keys() >= {*parts_of(case.label)}:
        return None
    shown_by_second_run = not SHOWN_BY_SECOND_RUN.isdisjoint(mistakes(start))
    return await _Reducer(replace(trial, all_twice=shown_by_second_run), plan, start, case).reduced()


def share_wrong(result: CaseResult) -> float:
    """Of its outputs' elements; all where a rule is broken."""
    elements = sum(output.elements for output in result.outputs)
    if result.violations or not elements:
        return 1.0
    return sum(output.failing for output in result.outputs) / elements


@dataclass
class _Reducer:
    trial: ValidationTrial
    plan: PlanBuilder
    start: CaseResult
    case: Case
    judged: JudgedCase | None = None

    async def reduced(self) -> Reduction | None:
        for part in parts_of(self.case.label):
            await self.takes(self.case.dims, [other for other in parts_of(self.case.label) if other != part])
        right_at: dict[str, int] = {}
        for dim in self.case.dims:
            for size in self.plain_sizes(dim):
                if not await self.takes({**self.case.dims, dim: size}, parts_of(self.case.label)):
                    right_at[dim] = size
                    break
        for dim in self.case.dims:
            await self.shrink(dim)
        return Reduction(self.case, self.judged, right_at, self.plan.declaration) if self.judged else None

    def plain_sizes(self, dim: str) -> Iterator[int]:
        """The base's size, and the power of two next to it, which fills a block."""
        base = self.plan.base[dim]
        yield from (size for size in (base, 1 << (base - 1).bit_length()) if size != self.case.dims[dim])

    async def takes(self, point: Point, parts: Sequence[str]) -> bool:
        """Whether the mistake is still there: then this is the case to go on with."""
        case = self.plan.combined(point, parts)
        if case is None:
            return True
        [judged] = await self.trial.run([case])
        # Random values may be, in a few elements, what the special ones were.
        is_clear = share_wrong(judged.result) >= CLEAR * share_wrong(self.start)
        chance = len(parts) < len(parts_of(self.case.label)) and not is_clear
        if chance or not same_mistake(judged.result, self.start):
            return False
        self.case, self.judged = case, judged
        return True

    async def shrink(self, dim: str) -> None:
        """Make one dim as small as the mistake allows."""
        points = ({**self.case.dims, dim: size} for size in SMALL if size < self.case.dims[dim])
        smaller = (self.plan.combined(point, parts_of(self.case.label)) for point in points)
        cases = [case for case in smaller if case is not None]
        for case, judged in zip(cases, await self.trial.run(cases) if cases else [], strict=True):
            if same_mistake(judged.result, self.start):
                self.case, self.judged = case, judged
                return


def same_mistake(result: CaseResult, other: CaseResult) -> bool:
    """Whether two results share a kind of mismatch or violation."""
    return bool(mistakes(result) & mistakes(other))


def mistakes(result: CaseResult) -> set[str]:
    return {m.kind for m in result.mismatches} | {v.kind for v in result.violations}
