"""One conversion at work: how it drafts its stages into files, and times them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_to_triton.benchmark.roofline import work_of_case
from pytorch_to_triton.benchmark.timing_trial import Implementation, Roof, TimingTrial, measure, table_of
from pytorch_to_triton.benchmark.traffic import traffic_of
from pytorch_to_triton.convert.gates import refuse_unknown_names
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import DraftOrigin, ResolvedTarget
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted
from pytorch_to_triton.draft.library import PURE, Way, Ways
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.hardware.versions import origin_of, versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable, Traffic
from pytorch_to_triton.validate.validate import Validation, open_validation


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

    async def draft(
        self,
        stage: Stage,
        ways: Ways | None = None,
        tuned: Mapping[str, Config] | None = None,
        note: str = "",
    ) -> Drafted:
        """Write one stage's file; without `ways` the usual ones. Raises NotConvertible."""
        drafted = self.drafted(stage, ways, tuned, note)
        self.file(stage).write_text(drafted.text, encoding="utf-8")
        triton = (await versions(self.worker, self.runtime)).triton
        refuse_unknown_names(drafted.text, self.file(stage), triton)
        return drafted

    async def traffic(self, file: Path) -> Traffic | None:
        """What a stage's file launches and moves at the sizes of a timing."""
        origin = self.target.whole
        if origin is None:
            return None
        dims = self.target.timing_case().dims
        candidate = Target(path=file)
        return await traffic_of(
            self.worker, self.runtime, candidate, origin.traced, origin.source.declared, dims
        )

    def opened(self) -> AbstractAsyncContextManager[Validation]:
        """One validation for all stages; the first one's file must be there."""
        first = self.request.validation_of(Target(path=self.file(1)), 1)
        return open_validation(self.worker, first, self.runtime, self.target.problem)


def tuning_file(work: ConversionWork, label: str) -> Path:
    return work.folder / "tuning" / f"{label.replace(' ', '_')}.py"


async def side_by_side(work: ConversionWork, implementations: Sequence[Implementation]) -> TimingTable:
    """Implementations of a conversion's target, timed in turn."""
    trial = work.request.timing_of(implementations, work.target.timing_case())
    return await timed_once(work.worker, work.runtime, work.listener, trial, work.target.whole)


async def timed_once(
    worker: WorkerClient,
    runtime: Runtime,
    listener: ProgressListener | None,
    trial: TimingTrial,
    origin: DraftOrigin | None,
) -> TimingTable:
    """The table of a trial's one size; shares of the limit by the work of what was traced, if it was."""
    (case,) = trial.cases
    measurement = await measure(worker, trial, runtime, listener)
    traced = origin.traced if origin else None
    work = work_of_case(traced.graph, case, trial.passes, joint=traced.joint) if traced else None
    device = (await versions(worker, runtime)).devices[0].name
    return table_of(measurement.sizes[0], case, device, Roof(work))


async def note_on(work: ConversionWork) -> str:
    """A comment that says where the launch configurations come from."""
    origin = origin_of(await versions(work.worker, work.runtime))
    dims = " ".join(f"{k}={v}" for k, v in work.target.timing_case().dims.items())
    return f"# Launch configurations measured on {origin}, at {dims}."
