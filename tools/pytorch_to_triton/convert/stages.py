"""The stages of a conversion: drafted, validated against one truth, and on a device timed side by side.

Of a draft that is wrong, the operators behind its wrong results stay calls of PyTorch instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.request import LAST
from pytorch_to_triton.convert.work import ConversionWork, RankedWays, Tables, ranked_ways, time_stages, tune
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted
from pytorch_to_triton.draft.library import CHANNELS_LAST, PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.skeleton import operands
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.conclusion import wrong_of
from pytorch_to_triton.validate.validate import Validation


@dataclass(frozen=True)
class Staged:
    """The stages with their verdicts, and what was measured of them."""

    reports: Sequence[StageReport]
    tables: Tables = ()
    """Empty where nothing was timed."""
    notes: tuple[str, ...] = ()
    """How it was decided who computes convolutions and products, and in which configurations."""
    drafts: Sequence[Drafted] = ()
    """Of the stages, in order; also of those that were not reached."""
    left: tuple[tuple[str, str], ...] = ()
    """What was left to PyTorch as kernels for it were wrong, as in `ConversionWork`."""


async def stages_of(work: ConversionWork) -> Staged:
    """Draft, validate and, on a device, time the stages, up to the first that is not right.

    Where the first is wrong with a convolution in channels-last order, another is drafted in PyTorch's own:
    cuDNN may multiply float32 in TF32 in one of them and not in the other. Where a draft is wrong still, what
    its wrong results are computed by is left to PyTorch.
    """
    staged = await run_stages(work)
    if work.ways[0].convolutions == CHANNELS_LAST and not staged.reports[0].passed:
        work = replace(work, left_out=frozenset({CHANNELS_LAST}))
        staged = await run_stages(work)
    return await around_defects(work, staged)


async def around_defects(work: ConversionWork, staged: Staged) -> Staged:
    """The stages with more and more left to PyTorch until they are right; else as they were."""
    tried, graph = staged, work.target.graph
    if isinstance(work.target.origin, CutOrigin):
        return await around_parts(work, staged, work.target.origin)
    if graph is None:
        return staged
    for radius in RADII:
        left = blamed(graph, tried.reports, radius)
        if not left or work.request.strict:
            break
        work = replace(work, left=tuple({**dict(work.left), **left}.items()))
        try:
            tried = await run_stages(work)
        except NotConvertible:
            return staged
        if tried.reports[-1].passed:
            return tried
    return staged


async def around_parts(work: ConversionWork, staged: Staged, origin: CutOrigin) -> Staged:
    """The stages with one part, the last first, left to PyTorch, where that makes them right."""
    wrong = [*defects(staged.reports).values()]
    names = [part.name for part in reversed(origin.cut.parts)]
    for name in names if wrong and len(names) > 1 and not work.request.strict else ():
        fewer = replace(work, left=((name, wrong[0]),))
        try:
            tried = await run_stages(fewer)
        except NotConvertible:
            continue
        if tried.reports[-1].passed:
            return replace(tried, left=fewer.left)
    return staged


async def run_stages(work: ConversionWork) -> Staged:
    """The stages, with the ways that are left."""
    if work.runtime.interpreter:
        every = {stage: await work.write(stage, work.drafted(stage)) for stage in STAGE_NAMES}
        async with work.opened() as validation:
            reports = await validate_stages(work, validation, every)
            return Staged(reports, (), unmeasured(work, every[LAST]), [*every.values()])
    ranked = await ranked_ways(work)
    drafts: dict[Stage, Drafted] = {1: work.drafted(1), 2: work.drafted(2, ranked.fastest)}
    drafted = {stage: await work.write(stage, draft) for stage, draft in drafts.items()}
    async with work.opened() as validation:
        reports, ranked = await validate_in_order(work, validation, drafted, ranked)
        if not all(report.passed for report in reports):
            return Staged(reports, await time_stages(work, reports), ranked.notes, [*drafted.values()])
        tuned = await tune(work, reports, ranked)
        reports += await validate_stages(work, validation, {LAST: tuned.drafted})
        right = all(report.passed for report in reports)
        tables = tuned.tables if right and tuned.tables else await time_stages(work, reports)
        return Staged(reports, tables, tuned.notes, [*drafted.values(), tuned.drafted])


async def validate_in_order(
    work: ConversionWork, validation: Validation, drafted: dict[Stage, Drafted], ranked: RankedWays
) -> tuple[list[StageReport], RankedWays]:
    """The first two stages, the second in the fastest way that is right; and the ways from that on."""
    reports = await validate_stages(work, validation, drafted)
    while [report.passed for report in reports] == [True, False] and ranked.ways[1:]:
        ranked = ranked.without_fastest(reports[1].verdict)
        drafted[2] = await work.write(2, work.drafted(2, ranked.fastest))
        reports[1:] = await validate_stages(work, validation, {2: drafted[2]})
    return reports, ranked


def unmeasured(work: ConversionWork, drafted: Drafted) -> tuple[str, ...]:
    """Why who computes convolutions and products is as it is, where nothing was timed."""
    if len(work.ways) == 1:
        return ()
    pure = "" if drafted.ways == PURE else " --pure drafts own kernels for all."
    return (f"Products and convolutions, chosen without timing: {drafted.ways}, usually the fastest.{pure}",)


async def validate_stages(
    work: ConversionWork, validation: Validation, drafted: Mapping[Stage, Drafted]
) -> list[StageReport]:
    """The stages' verdicts, found at once, up to the first that is not passed: then the later ones stop."""
    reports: dict[Stage, StageReport] = {}
    scopes = {stage: anyio.CancelScope() for stage in drafted}
    cases = dict.fromkeys(drafted, (0.0, 0.0))

    async def judge(stage: Stage) -> None:
        with scopes[stage]:
            shown = work.listener and StageListener(work.listener, stage, cases, dict(work.left))
            verdict = await validation.verdict(
                work.request.validation_of(Target(path=work.file(stage)), stage, drafted[stage].calls),
                f"stage{stage}_{len(validation.reference.staged)}",  # a stage may have several drafts
                shown,
            )
            reports[stage] = report_of(work, stage, drafted[stage], verdict)
            if not reports[stage].passed:
                for later in (scope for number, scope in scopes.items() if number > stage):
                    later.cancel()

    async with task_group() as group:
        for stage in drafted:
            group.start_soon(judge, stage)
    in_order = [reports[stage] for stage in drafted if stage in reports]
    wrong = next((n for n, report in enumerate(in_order, 1) if not report.passed), len(in_order))
    return in_order[:wrong]


def report_of(work: ConversionWork, stage: Stage, drafted: Drafted, verdict: Verdict) -> StageReport:
    """A stage with its verdict; its speed is judged when all stages are timed."""
    return StageReport(
        stage=stage,
        name=STAGE_NAMES[stage],
        file=work.file(stage),
        kernels=tuple(k.name for k in drafted.kernels),
        passes=tuple(k.passes for k in drafted.kernels),
        calls=tuple(dict.fromkeys(drafted.calls)),
        passed=verdict.verdict == "passed",
        verdict=verdict,
        speed="not measured",
    )


@dataclass(frozen=True)
class StageListener:
    """Of one stage among others that are validated at once, as one piece of work."""

    listener: ProgressListener
    stage: Stage
    cases: dict[Stage, tuple[float, float]]
    """By stage, how many are done and of how many: each stage has about as many as the others."""
    left: Collection[str] = ()
    """What is left to PyTorch, as kernels for it were wrong: the stages are drafted again without."""

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.cases[self.stage] = done, total or done
        of_all, totals = zip(*self.cases.values(), strict=True)
        again = f", drafted again as {', '.join(self.left)} was wrong" if self.left else ""
        text = f"stage {self.stage}{again}: {message}"
        await self.listener.progress(sum(of_all), len(totals) * max(totals), text)

    async def item(self, result: dict[str, Any]) -> None:
        await self.listener.item(result)


RADII = (0, 2, 6)
"""How many operators before a wrong result are left with it, in one attempt after the other."""


def blamed(graph: Graph, reports: Sequence[StageReport], radius: int) -> dict[str, str]:
    """The nodes up to `radius` operators before the results that the last stage has wrong, with the reason.

    Empty where all stages passed, or none is known to give a wrong number.
    """
    outputs = {o.path: o.name for o in graph.outputs}
    return {
        node: reason
        for path, reason in defects(reports).items()
        for node in _before(graph, outputs.get(path, ""), radius)
    }


def defects(reports: Sequence[StageReport]) -> dict[str, str]:
    """The results that the last stage has wrong, each with what is said of it: the end of a sentence."""
    last = reports[-1]
    cases = [] if last.passed else wrong_of(last.verdict.cases)
    return {
        mismatch.output: (
            f"a defect of pytorch-to-triton, please report it (a kernel of stage {last.stage} was wrong, "
            f"for example at {case.name})"
        )
        for case in cases
        for mismatch in case.mismatches
    }


def _before(graph: Graph, name: str, radius: int) -> Collection[str]:
    """The node and those that it is computed from, in so many steps."""
    nodes = {node.name: node for node in graph.nodes}
    found = {name} & nodes.keys()
    for _ in range(radius):
        found |= {n for node in found for n in operands(nodes[node]) if n in nodes}
    return found
