"""One conversion at work: it drafts its stages into files and times them, the last one with every way to
compute convolutions and products, and with every launch configuration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytorch_to_triton.benchmark.roofline import work_of_case
from pytorch_to_triton.benchmark.timing_trial import Implementation, measure, table_of
from pytorch_to_triton.benchmark.traffic import traffic_of
from pytorch_to_triton.benchmark.trust import SizeMeasured
from pytorch_to_triton.convert.gates import COMPILE, EAGER, label_of, mean_ms, refuse_unknown_names
from pytorch_to_triton.convert.request import LAST, ConversionRequest
from pytorch_to_triton.convert.resolve import ResolvedTarget
from pytorch_to_triton.draft.file.launches import Stage, Variant
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted
from pytorch_to_triton.draft.library import PURE, Way, Ways
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.hardware.versions import origin_of, versions
from pytorch_to_triton.inputs.expression import holds, names_in, point_name
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable, Traffic
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.targets.listed_inputs import with_values_listed
from pytorch_to_triton.validate.conclusion import wrong_of
from pytorch_to_triton.validate.validate import Validation, open_validation

Tables = tuple[TimingTable, ...]
"""One a size, the smallest first."""


@dataclass(frozen=True)
class ConversionWork:
    """One conversion: what is drafted from, and where it goes."""

    worker: WorkerClient
    runtime: Runtime
    listener: ProgressListener | None
    target: ResolvedTarget
    folder: Path
    left_out: frozenset[Way] = frozenset()
    """Ways of computing convolutions that are not taken."""
    left: tuple[tuple[str, str], ...] = ()
    """Nodes of the graph, or parts, left to PyTorch as kernels for them were wrong, each with the reason."""

    @property
    def request(self) -> ConversionRequest:
        return self.target.request

    def file(self, stage: Stage) -> Path:
        """Where a stage's file lies."""
        return self.folder / f"stage{stage}_{STAGE_NAMES[stage]}.py"

    @property
    def ways(self) -> tuple[Ways, ...]:
        """Who may compute convolutions and products; the first where nothing is measured."""
        every = (PURE,) if self.request.pure else self.target.convertible().ways()
        kept = (ways for ways in every if ways.convolutions not in self.left_out)
        return tuple(replace(ways, left=self.left) for ways in kept)

    def drafted(
        self,
        stage: Stage,
        ways: Ways | None = None,
        tuned: Mapping[str, Config] | None = None,
        note: str = "",
    ) -> Drafted:
        """One stage, not written; without `ways` the usual ones. Raises NotConvertible."""
        return self.target.convertible().drafted(stage, ways or self.ways[0], tuned, note)

    async def write(self, stage: Stage, drafted: Drafted) -> Drafted:
        """Write one stage's file. Raises NotConvertible where this Triton lacks a name that it uses."""
        self.file(stage).write_text(drafted.text, encoding="utf-8")
        triton = (await versions(self.worker, self.runtime)).triton
        refuse_unknown_names(drafted.text, self.file(stage), triton)
        return drafted

    async def traffic(self, file: Path, dims: Mapping[str, int]) -> Traffic | None:
        """What a stage's file launches and moves at these sizes."""
        origin = self.target.whole
        if origin is None:
            return None
        declared = origin.source.declared
        inputs = with_values_listed(self.target.description, declared["INPUTS"])
        given = {**declared, "INPUTS": inputs}
        return await traffic_of(self.worker, self.runtime, Target(path=file), origin.traced, given, dims)

    def opened(self) -> AbstractAsyncContextManager[Validation]:
        """One validation for all stages; the first one's file must be there."""
        first = self.request.validation_of(Target(path=self.file(1)), 1)
        return open_validation(self.worker, first, self.runtime, self.target.problem)


async def side_by_side(work: ConversionWork, implementations: Sequence[Implementation]) -> Tables:
    """Implementations of a conversion's target, timed in turn at each of its sizes: a table for each that was
    reached, with shares of the limit by the work of what was traced, if it was."""
    cases = {case.name: case for case in work.target.timing_cases()}
    trial = work.request.timing_of(implementations, [*cases.values()])
    measurement = await measure(work.worker, trial, work.runtime, work.listener)
    device = (await versions(work.worker, work.runtime)).devices[0].name
    traced = work.target.whole.traced if work.target.whole else None

    def table(size: SizeMeasured) -> TimingTable:
        case = cases[size.case]
        least = work_of_case(traced.graph, case, trial.passes, joint=traced.joint) if traced else None
        return table_of(size, case, device, least)

    return tuple(map(table, measurement.sizes))


async def note_on(work: ConversionWork) -> str:
    """A comment that says where the launch configurations come from."""
    origin = origin_of(await versions(work.worker, work.runtime))
    sizes = "; ".join(point_name(case.dims) for case in work.target.timing_cases())
    return f"# Launch configurations measured on {origin}, at {sizes}."


@dataclass(frozen=True)
class Tuned:
    """The last stage with measured launch configurations."""

    drafted: Drafted
    tables: Tables = ()
    """All stages side by side, where what was measured while tuning says it all."""
    notes: tuple[str, ...] = ()
    """What was measured of who computes what, and which kernels want several configurations."""


@dataclass
class ConfigChoice:
    """The configurations of one kernel, by the label that they are timed under."""

    variant: Variant
    labels: dict[str, Config] = field(default_factory=dict)

    def best(self, tables: Tables) -> str:
        """The label of the fastest, by the geometric mean over the sizes; the first where none could be
        timed at all of them."""
        launched = self.launched_in(tables)
        timed = {label: ms for label in self.labels if (ms := mean_ms(label, launched)) is not None}
        return min(timed, key=lambda label: timed[label]) if timed else next(iter(self.labels))

    def launched_in(self, tables: Tables) -> Tables:
        """Those at whose sizes the kernel is launched."""
        return tuple(table for table in tables if may_run(self.variant, table.dims))

    def others_best(self, tables: Tables) -> str:
        """Where another configuration than the best over all sizes is the fastest, as a sentence."""
        chosen = self.best(tables)
        others = {
            point_name(table.dims): point_name(self.labels[best])
            for table in self.launched_in(tables)
            if (best := self.best((table,))) != chosen
        }
        if not others:
            return ""
        listed = "; ".join(f"at {sizes} {config} is faster" for sizes, config in others.items())
        config = point_name(self.labels[chosen])
        return f"{self.variant.kernel} is launched with {config}, the fastest over all timed sizes; {listed}."


async def tune(work: ConversionWork, reports: Sequence[StageReport], ranked: RankedWays) -> Tuned:
    """Time all configurations of the last stage beside the stages so far; draft it with the best."""
    ways = ranked.fastest
    choices, candidates = write_choices(work, ways)
    if not choices:
        return Tuned(await work.write(LAST, work.drafted(LAST, ways)), notes=ranked.notes)
    implementations = [*stage_subjects(work, reports), *candidates]
    if len(choices) == 1:
        implementations.append(compiled_target(work))  # else all are timed again, with the last stage
    tables = await side_by_side(work, implementations)
    best = [choice.best(tables) for choice in choices]
    tuned = {choice.variant.kernel: choice.labels[label] for choice, label in zip(choices, best, strict=True)}
    drafted = await work.write(LAST, work.drafted(LAST, ways, tuned, await note_on(work)))
    notes = (*ranked.notes, *filter(None, (choice.others_best(tables) for choice in choices)))
    if len(choices) > 1:
        return Tuned(drafted, notes=notes)
    return Tuned(drafted, tuple(renamed(table, best[0], label_of(LAST)) for table in tables), notes)


@dataclass(frozen=True)
class RankedWays:
    """Who may compute convolutions and products, the fastest first."""

    ways: tuple[Ways, ...]
    notes: tuple[str, ...] = ()
    """What was measured of them, a sentence a size, where there was a choice."""

    @property
    def fastest(self) -> Ways:
        return self.ways[0]

    def without_fastest(self, wrong: Verdict) -> RankedWays:
        """The others; a note says that the fastest is not taken, and where it was seen to be wrong."""
        case = next((f", for example at {case.name}" for case in wrong_of(wrong.cases)), "")
        refused = f"Not taken, as it does not pass: {self.fastest}{case}."
        return RankedWays(self.ways[1:], (*self.notes, refused))


async def ranked_ways(work: ConversionWork) -> RankedWays:
    """The ways, each timed with a draft of the second stage, which is tuned as it runs."""
    by_text: dict[str, Ways] = {}
    for ways in work.ways:
        with suppress(NotConvertible):
            by_text.setdefault(work.drafted(2, ways).text, ways)
    if len(by_text) == 1:
        return RankedWays((*by_text.values(),))
    drafts = {f"way {number}": ways for number, ways in enumerate(by_text.values())}
    candidates = [write_candidate(work, *each) for each in zip(drafts, by_text, strict=True)]
    return ranked_by(drafts, await side_by_side(work, candidates))


def ranked_by(drafts: Mapping[str, Ways], tables: Tables) -> RankedWays:
    """The ways by label in the order of their times over all sizes; what could not be timed comes last."""
    times = {label: ms for label in drafts if (ms := mean_ms(label, tables)) is not None}
    order = sorted(drafts, key=lambda label: times.get(label, math.inf))
    notes = (ranking(table, drafts) for table in tables if table.timings)
    return RankedWays(tuple(drafts[label] for label in order), tuple(notes))


def ranking(table: TimingTable, drafts: Mapping[str, Ways]) -> str:
    """The ways at one size, the fastest first."""
    told = [
        f"{drafts[timing.label]}, {timing.median_ms:.3f} ms"
        for timing in sorted(table.timings, key=lambda timing: timing.median_ms)
    ]
    then = f"; then {'; '.join(told[1:])}" if told[1:] else ""
    return f"Fastest on {table.device} at {point_name(table.dims)}: {told[0]}{then}."


def write_choices(work: ConversionWork, ways: Ways) -> tuple[list[ConfigChoice], list[Implementation]]:
    """A file for each configuration of each kernel that runs at the timed size, the others as they are."""
    untuned = work.drafted(LAST, ways)
    points = [case.dims for case in work.target.timing_cases()]
    variants = (variant for kernel in untuned.kernels for variant in kernel.variants)
    choices = [ConfigChoice(v) for v in variants if any(may_run(v, point) for point in points)]
    files = []
    for choice in choices:
        for number, config in enumerate(choice.variant.candidates):
            label = f"{choice.variant.kernel} {number}"
            choice.labels[label] = config
            drafted = work.drafted(LAST, ways, {choice.variant.kernel: config})
            files.append(write_candidate(work, label, drafted.text))
    return choices, files


def may_run(variant: Variant, dims: Mapping[str, int]) -> bool:
    """Whether this variant is launched at these dimensions; sizes that come from values are unknown there."""
    return not names_in(variant.condition) <= dims.keys() or holds(variant.condition, dims)


def write_candidate(work: ConversionWork, label: str, text: str) -> Implementation:
    """Write a file that is only timed."""
    file = work.folder / "tuning" / f"{label.replace(' ', '_')}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return Implementation(label, Target(path=file), "candidate")


def stage_subjects(work: ConversionWork, reports: Sequence[StageReport]) -> list[Implementation]:
    """Eager PyTorch and the stages that are right."""
    right = [report for report in reports if report.verdict.verdict == "passed"]
    stages = [Implementation(label_of(r.stage), Target(path=r.file), "candidate") for r in right]
    return [Implementation(EAGER, work.request.target, "reference"), *stages]


def compiled_target(work: ConversionWork) -> Implementation:
    """The target through torch.compile."""
    return Implementation(COMPILE, work.request.target, "reference", "default")


async def time_stages(work: ConversionWork, reports: Sequence[StageReport]) -> Tables:
    """Eager PyTorch, torch.compile and all stages that are right side by side; nothing where none is."""
    implementations = stage_subjects(work, reports)
    if len(implementations) == 1:
        return ()
    return await side_by_side(work, [*implementations, compiled_target(work)])


def renamed(table: TimingTable, winner: str, label: str) -> TimingTable:
    """The table with the winner under another label, and without the other configurations."""
    keep = {winner: label, **{name: name for name in (EAGER, COMPILE, label_of(1), label_of(2))}}
    timings = [t.model_copy(update={"label": keep[t.label]}) for t in table.timings if t.label in keep]
    flags = [f.model_copy(update={"label": keep[f.label]}) for f in table.flags if f.label in keep]
    failed = {keep[name]: why for name, why in table.failed.items() if name in keep}
    return table.model_copy(update={"timings": tuple(timings), "flags": tuple(flags), "failed": failed})
