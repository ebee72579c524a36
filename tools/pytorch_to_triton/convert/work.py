"""One conversion at work: what it drafts from, with which settings, and how it times."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_to_triton.benchmark.passes import work_of_case
from pytorch_to_triton.benchmark.timing_trial import Implementation, Roof, TimingTrial, measured, table_of
from pytorch_to_triton.convert.gates import refuse_unknown_names
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted, Source, draft
from pytorch_to_triton.draft.library import PURE, Way, Ways, ways_of
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.graph.cost import held_bytes
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import Validation, open_validation

TIMED_BYTES = 2**27
"""Inputs of a timing, or its largest value, hold at least this many bytes, twice the largest L2 cache."""
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
    pure: bool = False
    """Whether no library may compute what a kernel can."""
    left_out: frozenset[Way] = frozenset()
    """Ways of computing convolutions that are not taken."""

    def file(self, stage: Stage) -> Path:
        """Where a stage's file lies."""
        return self.folder / f"stage{stage}_{STAGE_NAMES[stage]}.py"

    @property
    def ways(self) -> tuple[Ways, ...]:
        """Who may compute convolutions and products; the first where nothing is measured."""
        found = (PURE,) if self.pure else ways_of(self.traced.graph)
        return tuple(ways for ways in found if ways.convolutions not in self.left_out)

    def drafted(self, stage: Stage, ways: Ways | None, tuned: Mapping[str, Config] | None = None) -> Drafted:
        """One stage, not written; without `ways` the usual ones. Raises NotConvertible."""
        return draft(self.traced.graph, self.source, stage, tuned, ways or self.ways[0])

    async def draft(
        self,
        stage: Stage,
        ways: Ways | None = None,
        tuned: Mapping[str, Config] | None = None,
        note: str = "",
    ) -> Drafted:
        """Write one stage's file; without `ways` the usual ones. Raises NotConvertible."""
        work = replace(self, source=replace(self.source, note=note)) if note else self
        drafted = work.drafted(stage, ways, tuned)
        self.file(stage).write_text(drafted.text, encoding="utf-8")
        found = await versions(self.worker, self.runtime)
        refuse_unknown_names(drafted.text, self.file(stage), found.triton)
        return drafted

    def request(self, stage: Stage, calls: Sequence[str] = ()) -> ValidationRequest:
        """How a stage is validated; `calls` are the operators that its draft leaves to PyTorch."""
        return ValidationRequest(
            candidate=Target(path=self.file(stage)),
            reference=self.target,
            options=self.options,
            allow_torch=frozenset(calls),
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
        """The sizes that are timed."""
        return timing_case(self.declaration, self.traced.graph)


def timing_case(declaration: Declaration, graph: Graph | None) -> Case:
    """The largest declared sizes, enlarged until the inputs, or the largest value, fill a GPU."""
    dims = timing_dims(declaration, at_least_bytes=TIMED_BYTES, held=held_bytes(graph))
    return Case(name="timing", group="declared", dims=dims, arguments=declaration.arguments(dims))


def tuning_file(work: ConversionWork, label: str) -> Path:
    return work.folder / "tuning" / f"{label.replace(' ', '_')}.py"


async def side_by_side(work: ConversionWork, implementations: Sequence[Implementation]) -> TimingTable:
    """Implementations of a conversion's target, timed in turn."""
    trial = timing_trial(
        work.target,
        implementations,
        work.timing_case(),
        seed=work.seed,
        seconds=work.seconds,
        backward=work.backward,
    )
    return await timed_once(work.worker, work.runtime, work.listener, trial, work.traced)


def timing_trial(
    target: Target,
    implementations: Sequence[Implementation],
    case: Case,
    *,
    seed: int,
    seconds: float,
    backward: bool,
) -> TimingTrial:
    """One size, as gates and the choice of configurations have it timed."""
    return TimingTrial(
        reference=target,
        implementations=implementations,
        cases=(case,),
        seed=seed,
        seconds=seconds,
        passes="both" if backward else "forward",
        depth="brief",
    )


async def timed_once(
    worker: WorkerClient,
    runtime: Runtime,
    listener: ProgressListener | None,
    trial: TimingTrial,
    traced: Traced | None,
) -> TimingTable:
    """The table of a trial's one size; shares of the limit by the work of what was traced, if it was."""
    (case,) = trial.cases
    found = await measured(worker, trial, runtime, listener)
    work = work_of_case(traced.graph, case, trial.passes, joint=traced.joint) if traced else None
    device = (await versions(worker, runtime)).devices[0].name
    return table_of(found.sizes[0], case, device, Roof(work))


async def note_on(work: ConversionWork) -> str:
    """A comment that says where the launch configurations come from."""
    found = await versions(work.worker, work.runtime)
    dims = " ".join(f"{k}={v}" for k, v in work.timing_case().dims.items())
    today = datetime.datetime.now(tz=datetime.UTC).date()
    where = f"{found.devices[0].name}, Triton {found.triton}, {today}, at {dims}"
    return f"# Launch configurations measured on {where}."
