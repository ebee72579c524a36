"""sweep: many items through the phases of the single tools, resumable, on all GPUs that there are."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.sweep.engine import Again
from pytorch_to_triton.sweep.executor import Executor, Local
from pytorch_to_triton.sweep.files import write_results
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.sweep.journal import open_journal
from pytorch_to_triton.sweep.phases import ON_DEVICE_ALONE, PHASES, PhaseName, Treatment
from pytorch_to_triton.sweep.report import SweepReport, read_results
from pytorch_to_triton.sweep.run import SweepRun, refuse_without_candidates
from pytorch_to_triton.sweep.sources import items_in


@dataclass(frozen=True)
class SweepRequest:
    """What to sweep, and how."""

    source: Path
    treatment: Treatment
    phases: tuple[PhaseName, ...] = ()
    """None: draft and validate, and time where there is a GPU."""
    candidates: Path | None = None
    options: Options = NO_OPTIONS
    backward: bool = False
    jobs: int | None = None
    """Items at once on the CPU; None: one a core."""
    device_jobs: int = 4
    """Items at once on a GPU, but for timings."""
    again: Again | None = None
    deadline: float | None = None
    """Seconds after which the sweep ends, to go on another time."""
    ray: str | None = None
    """The address of a Ray cluster that does the work; None: this machine."""
    against: Path | None = None
    """The results folder of another sweep to compare with."""


async def sweep(
    worker: WorkerClient, request: SweepRequest, runtime: Runtime, listener: ProgressListener
) -> SweepReport:
    """All items through all phases; what the results folder holds already is not done again.

    Raises BadInput for a source without items and for lines that cannot be used, and where another sweep
    writes into the folder; MissingRequirement for a timing without a GPU, and without Ray where it is wanted.
    """
    phases = phases_of(request, runtime)
    out = request.treatment.out
    if request.against is not None:
        read_results(request.against)
    with open_journal(out) as journal:
        items = await anyio.to_thread.run_sync(items_of, request, out)
        refuse_without_candidates(items, phases)
        async with open_executor(worker, request, runtime) as executor:
            run = SweepRun(items, request.treatment, executor, journal)
            write = partial(write_results, out, phases, executor.where, against=request.against)
            try:
                with anyio.move_on_after(request.deadline):
                    for phase in phases:
                        await run.do(phase, request.again, listener)
            except anyio.get_cancelled_exc_class():
                write(results=run.results(phases))
                raise
        return await anyio.to_thread.run_sync(partial(write, results=run.results(phases)))


def items_of(request: SweepRequest, out: Path) -> list[SweepItem]:
    return items_in(
        request.source, out, request.options, candidates=request.candidates, backward=request.backward
    )


def phases_of(request: SweepRequest, runtime: Runtime) -> tuple[PhaseName, ...]:
    """The phases in their order. Raises MissingRequirement for a timing without a GPU."""
    # A draft in place of a missing answer would be counted as one.
    untimed: tuple[PhaseName, ...] = ("validate",) if request.candidates else ("draft", "validate")
    named = request.phases or (untimed if runtime.interpreter else (*untimed, "time"))
    if runtime.interpreter and {*ON_DEVICE_ALONE} & {*named} and request.ray is None:
        raise MissingRequirement(
            "Timing needs a GPU, and this machine has none that torch can use.",
            f"Leave out the phases {' and '.join(ON_DEVICE_ALONE)}.",
        )
    return tuple(phase for phase in PHASES if phase in named)


@asynccontextmanager
async def open_executor(
    worker: WorkerClient, request: SweepRequest, runtime: Runtime
) -> AsyncIterator[Executor]:
    """This machine, or the Ray cluster that is asked for. Raises MissingRequirement without Ray."""
    jobs = request.jobs or os.cpu_count() or 1
    if request.ray is None:
        installed = await versions(worker, runtime)
        yield Local(worker, request.treatment, runtime, installed, jobs, request.device_jobs)
        return
    from pytorch_to_triton.sweep.cluster import open_cluster

    async with open_cluster(request.ray, request.treatment, runtime, request.device_jobs) as cluster:
        yield cluster
