"""The stages of a conversion: drafted, validated against one truth, and on a device timed side by side."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.benchmark.roofline import work_of
from pytorch_to_triton.benchmark.timing_trial import Implementation, Roof, TimingTrial, measured, table_of
from pytorch_to_triton.convert.conversion_report import EAGER
from pytorch_to_triton.convert.gates import label_of, refuse_unknown_names
from pytorch_to_triton.draft.file.launches import Stage, Variant
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted, Source, draft
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import Validation, open_validation

TIMED_BYTES = 2**27
"""Inputs of a timing hold at least this many bytes, twice the largest L2 cache."""
LAST: Stage = 3


@dataclass(frozen=True)
class ConversionWork:
    """One conversion: what is drafted from, and where it goes."""

    worker: WorkerClient
    runtime: Runtime
    listener: ProgressListener | None
    target: Target
    options: Options
    folder: Path
    source: Source
    traced: Traced
    declaration: Declaration
    seed: int
    seconds: float
    """How long one call may take, compilation and tuning included."""
    backward: bool
    """Whether gradients are compared and timed too."""
    thorough: bool
    """Whether the last stage is checked by compute-sanitizer too."""

    def file(self, stage: Stage) -> Path:
        """Where a stage's file lies."""
        return self.folder / f"stage{stage}_{STAGE_NAMES[stage]}.py"

    async def draft(self, stage: Stage, tuned: Mapping[str, Config] | None = None, note: str = "") -> Drafted:
        """Write one stage's file. Raises NotConvertible."""
        source = replace(self.source, note=note) if note else self.source
        drafted = draft(self.traced.graph, source, stage, tuned)
        self.file(stage).write_text(drafted.text, encoding="utf-8")
        found = await versions(self.worker, self.runtime)
        refuse_unknown_names(drafted.text, self.file(stage), found.triton)
        return drafted

    def request(self, stage: Stage) -> ValidationRequest:
        """How a stage is validated."""
        return ValidationRequest(
            candidate=Target(path=self.file(stage)),
            reference=self.target,
            options=self.options,
            seed=self.seed,
            seconds=self.seconds,
            backward=self.backward,
            thorough=self.thorough and stage == LAST,
            require_int64_offsets=True,
            require_mixed_dtypes=True,
        )

    def opened(self) -> AbstractAsyncContextManager[Validation]:
        """One validation for all stages; the first one's file must be there."""
        return open_validation(self.worker, self.request(1), self.runtime)

    def timing_case(self) -> Case:
        """The largest declared sizes, enlarged until the inputs are large for a GPU."""
        dims = timing_dims(self.declaration, at_least_bytes=TIMED_BYTES)
        return Case(name="timing", group="declared", dims=dims, arguments=self.declaration.arguments(dims))


async def stages_of(work: ConversionWork) -> tuple[list[StageReport], TimingTable | None]:
    """Draft, validate and, on a device, time the stages, up to the first that is not right."""
    if work.runtime.interpreter:
        drafted = {stage: await work.draft(stage) for stage in STAGE_NAMES}
        async with work.opened() as validation:
            return await validated(work, validation, drafted), None
    drafted = {1: await work.draft(1), 2: await work.draft(2)}
    async with work.opened() as validation:
        first = await validated(work, validation, drafted)
        if not all(report.passed for report in first):
            return first, await timed(work, first)
        tuned = await tune(work, first)
        last = await validated(work, validation, {LAST: tuned.drafted})
        reports = first + last
        right = all(report.passed for report in reports)
        return reports, tuned.table if right and tuned.table else await timed(work, reports)


async def validated(
    work: ConversionWork, validation: Validation, drafted: Mapping[Stage, Drafted]
) -> list[StageReport]:
    """The stages' verdicts, found at once, up to the first that is not passed: then the later ones stop."""
    reports: dict[Stage, StageReport] = {}
    scopes = {stage: anyio.CancelScope() for stage in drafted}

    async def judge(stage: Stage) -> None:
        with scopes[stage]:
            listener = (
                StageListener(work.listener, f"stage {stage} ({STAGE_NAMES[stage]})")
                if work.listener
                else None
            )
            verdict = await validation.verdict(work.request(stage), f"stage{stage}", listener)
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
        passed=verdict.verdict == "passed",
        verdict=verdict,
        speed="not measured",
    )


@dataclass(frozen=True)
class Tuned:
    """The last stage with measured launch configurations."""

    drafted: Drafted
    table: TimingTable | None
    """All stages side by side, where what was measured while tuning says it all."""


@dataclass
class ConfigChoice:
    """The configurations of one kernel, by the label that they are timed under."""

    variant: Variant
    labels: dict[str, Config] = field(default_factory=dict)

    def best(self, table: TimingTable) -> tuple[str, Config]:
        """The fastest; the first where none could be timed."""
        timed = [timing for timing in table.timings if timing.label in self.labels]
        label = min(timed, key=lambda timing: timing.median_ms).label if timed else next(iter(self.labels))
        return label, self.labels[label]


async def tune(work: ConversionWork, reports: Sequence[StageReport]) -> Tuned:
    """Time all configurations of the last stage beside the stages so far; draft it with the best."""
    untuned = draft(work.traced.graph, work.source, LAST)
    choices = await written_choices(work, untuned)
    if not choices:
        return Tuned(await work.draft(LAST), None)
    implementations = [*stage_subjects(work, reports), *candidates(work, choices)]
    table = await side_by_side(work, implementations)
    best = {choice.variant.kernel: choice.best(table) for choice in choices}
    tuned = {kernel: config for kernel, (_, config) in best.items()}
    drafted = await work.draft(LAST, tuned, await note_on(work))
    (label, _), *others = best.values()
    return Tuned(drafted, None if others else renamed(table, label, label_of(LAST)))


async def written_choices(work: ConversionWork, untuned: Drafted) -> list[ConfigChoice]:
    """A file for each configuration of each kernel that runs at the timed size, the others as they are."""
    dims = work.timing_case().dims
    choices = [ConfigChoice(v) for k in untuned.kernels for v in k.variants if holds(v.condition, dims)]
    for choice in choices:
        for number, config in enumerate(choice.variant.candidates):
            label = f"{choice.variant.kernel} {number}"
            file = tuning_file(work, label)
            file.parent.mkdir(exist_ok=True)
            text = draft(work.traced.graph, work.source, LAST, {choice.variant.kernel: config}).text
            file.write_text(text, encoding="utf-8")
            choice.labels[label] = config
    return choices


def tuning_file(work: ConversionWork, label: str) -> Path:
    return work.folder / "tuning" / f"{label.replace(' ', '_')}.py"


def candidates(work: ConversionWork, choices: Sequence[ConfigChoice]) -> list[Implementation]:
    return [
        Implementation(label, Target(path=tuning_file(work, label)), "candidate")
        for choice in choices
        for label in choice.labels
    ]


def stage_subjects(work: ConversionWork, reports: Sequence[StageReport]) -> list[Implementation]:
    """Eager PyTorch and the stages that are right."""
    right = [report for report in reports if report.verdict.verdict == "passed"]
    stages = [Implementation(label_of(r.stage), Target(path=r.file), "candidate") for r in right]
    return [Implementation(EAGER, work.target, "reference"), *stages]


async def timed(work: ConversionWork, reports: Sequence[StageReport]) -> TimingTable | None:
    """Eager PyTorch and all stages that are right side by side; None where none is."""
    implementations = stage_subjects(work, reports)
    return await side_by_side(work, implementations) if len(implementations) > 1 else None


async def side_by_side(work: ConversionWork, implementations: Sequence[Implementation]) -> TimingTable:
    case = work.timing_case()
    trial = TimingTrial(
        reference=work.target,
        implementations=implementations,
        cases=(case,),
        seed=work.seed,
        seconds=work.seconds,
        passes="both" if work.backward else "forward",
        depth="brief",
    )
    found = await measured(work.worker, trial, work.runtime, work.listener)
    roof = Roof(work_of(work.traced.graph, case.dims, case.dtypes, None))
    device = (await versions(work.worker, work.runtime)).devices[0].name
    return table_of(found.sizes[0], case, device, roof)


def renamed(table: TimingTable, winner: str, label: str) -> TimingTable:
    """The table with the winner under another label, and without the other configurations."""
    keep = {winner: label, EAGER: EAGER, label_of(1): label_of(1), label_of(2): label_of(2)}
    timings = [t.model_copy(update={"label": keep[t.label]}) for t in table.timings if t.label in keep]
    flags = [f.model_copy(update={"label": keep[f.label]}) for f in table.flags if f.label in keep]
    failed = {keep[name]: why for name, why in table.failed.items() if name in keep}
    return table.model_copy(update={"timings": tuple(timings), "flags": tuple(flags), "failed": failed})


async def note_on(work: ConversionWork) -> str:
    """A comment that says where the launch configurations come from."""
    found = await versions(work.worker, work.runtime)
    dims = " ".join(f"{k}={v}" for k, v in work.timing_case().dims.items())
    today = datetime.datetime.now(tz=datetime.UTC).date()
    where = f"{found.devices[0].name}, Triton {found.triton}, {today}, at {dims}"
    return f"# Launch configurations measured on {where}."


@dataclass(frozen=True)
class StageListener:
    """Adds the stage to progress messages."""

    listener: ProgressListener
    stage: str

    async def progress(self, done: float, total: float | None, message: str) -> None:
        await self.listener.progress(done, total, f"{self.stage}: {message}")

    async def item(self, result: dict[str, Any]) -> None:
        await self.listener.item(result)
