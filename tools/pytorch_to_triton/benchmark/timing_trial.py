"""Timing several targets side by side on the device."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pytorch_to_triton.benchmark.figures import median_interval, spread
from pytorch_to_triton.benchmark.trust import Measurement, SizeMeasured, flags_of
from pytorch_to_triton.errors import TargetBroken
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.device_lock import device_lock, device_of
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Role, Target
from pytorch_to_triton.schema.timing import MinimalWork, Roofline, Timing, TimingTable
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.comparison import Unordered

ROUND_SECONDS = 4.0
"""What the timed rounds of one size may take; first calls and warm-up come on top."""
SAMPLES = {"full": 300, "brief": 100}
"""Timed calls of each implementation at a size, unless time runs out first."""
LOADING_SECONDS = 120.0
"""Of the whole job beside what its calls may take."""


@dataclass(frozen=True)
class Implementation:
    """Something to time."""

    label: str
    target: Target
    role: Role
    compiled: str | None = None
    """A mode of torch.compile to run it through."""


@dataclass(frozen=True)
class TimingTrial:
    """What to time on which inputs."""

    reference: Target
    """Generates the inputs and the state that all are given; its results are the expected ones."""
    implementations: Sequence[Implementation]
    cases: Sequence[Case]
    seed: int
    seconds: float
    """How long a first call may take, compilation and tuning included."""
    unordered: tuple[Unordered, ...] = ()
    """Results whose order is declared free."""
    passes: Passes = "forward"
    tf32: bool = False
    """Whether float32 products may run in TF32, for everybody."""
    depth: Literal["full", "brief"] = "full"
    """brief: only how fast each is, nothing of launches, graphs, single kernels and results.

    For targets that are validated separately."""


async def measure(
    worker: WorkerClient, trial: TimingTrial, runtime: Runtime, listener: ProgressListener | None = None
) -> Measurement:
    """Run the trial under the device lock. Raises TargetBroken where nothing could be timed.

    A run that ends early keeps the sizes that were done.
    """
    seconds = LOADING_SECONDS + len(trial.cases) * (
        trial.seconds + len(trial.implementations) * ROUND_SECONDS
    )
    async with device_lock(device_of(runtime), listener):
        outcome = await worker.ask(job_of(trial), runtime, seconds=seconds, listener=listener)
    items = outcome.items
    sizes = tuple(SizeMeasured.model_validate(item) for item in items)
    if outcome.answer is None and not sizes:
        how = outcome.status.replace("_", " ")
        raise TargetBroken(
            f"Timing {how} during {outcome.during or 'start'}: {outcome.detail}.",
            f"The log is in {outcome.folder}.",
        )
    return Measurement(sizes=sizes, ended="" if outcome.answer is not None else outcome.detail)


def job_of(trial: TimingTrial) -> Job:
    """The worker's job."""
    implementations: list[wire.TimedTarget] = [
        {"label": s.label, "target": s.target.as_json(), "role": s.role, "compiled": s.compiled}
        for s in trial.implementations
    ]
    setting: wire.TimingSetting = {
        "passes": trial.passes,
        "tf32": trial.tf32,
        "seconds": trial.seconds,
        "round_seconds": ROUND_SECONDS,
        "samples": SAMPLES[trial.depth],
        "full": trial.depth == "full",
        "state_seed": trial.seed,
        "unordered": [vars(each) for each in trial.unordered],
    }
    return Job(
        kind="timing",
        arguments={
            "reference": trial.reference.as_json(),
            "implementations": implementations,
            "cases": [{**case.model_dump(mode="json"), "seed": trial.seed} for case in trial.cases],
            "setting": setting,
        },
    )


def table_of(
    size: SizeMeasured, case: Case, device: str, work: MinimalWork | None, limit: Roofline | None = None
) -> TimingTable:
    """One size's samples as medians, rates and shares of the limit, with what is suspicious about them."""
    return TimingTable(
        device=device,
        dims=case.dims,
        dtypes=case.dtypes,
        bytes_moved=work.bytes_moved if work else 0,
        timings=tuple(timing_of(label, size, work, limit) for label in size.implementations),
        failed=size.failed,
        work=work,
        limit=limit,
        flags=tuple(flag for label in size.implementations for flag in flags_of(label, size)),
    )


def timing_of(label: str, size: SizeMeasured, work: MinimalWork | None, limit: Roofline | None) -> Timing:
    """One callable's figures; where another clock shows that it takes longer, they are that clock's."""
    measured = size.implementations[label]
    centre, low, high = median_interval(measured.samples_ms)
    notes = [note for note in (measured.graph_note, measured.profile_note) if note]
    if (other := size.contradiction(label)) is not None:
        notes.append(f"its own events showed {centre:.4f} ms")
        centre, low, high = other.ms, other.ms, other.ms
    flops = sum(work.flops.values()) if work else 0
    return Timing(
        label=label,
        median_ms=centre,
        low_ms=low,
        high_ms=high,
        calls=len(measured.samples_ms),
        spread=spread(measured.samples_ms),
        wall_ms=median(measured.wall_ms) if measured.wall_ms else None,
        graph_ms=median(measured.graph_ms) if measured.graph_ms else None,
        first_call_ms=measured.first_call_ms,
        peak_bytes=measured.peak_bytes,
        outside_ms=measured.quick_outside_ms,
        busy_ms=measured.busy_ms,
        library_ms=measured.library_ms,
        kernels=measured.kernels,
        gbytes_per_s=work.bytes_moved / centre / 1e6 if work else None,
        tflops=flops / centre / 1e9 if flops else None,
        share_of_limit=limit.ms / centre if limit else None,
        notes=tuple(notes),
    )
