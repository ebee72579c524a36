"""benchmark: is a kernel faster than its baselines, and how near is it to the limit of the device?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytorch_to_triton.benchmark.ceilings import ceilings_of
from pytorch_to_triton.benchmark.estimate import estimate_speed
from pytorch_to_triton.benchmark.flags import add_flags, of_conditions
from pytorch_to_triton.benchmark.plan import BenchmarkPlan, plan_benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.roofline import limit_of, precision_of
from pytorch_to_triton.benchmark.speed_report import write_report
from pytorch_to_triton.benchmark.timing_trial import measure, table_of
from pytorch_to_triton.benchmark.trust import Measurement, SizeMeasured
from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels
from pytorch_to_triton.benchmark.tuning.freeze import freeze as frozen_source
from pytorch_to_triton.benchmark.tuning.tune import TuneRequest, keep, kept_configs, tune
from pytorch_to_triton.benchmark.verdict import next_step_of, summary_of, verdict_of
from pytorch_to_triton.command_line import replay
from pytorch_to_triton.errors import BadInput, MissingRequirement, TargetNotFound
from pytorch_to_triton.hardware.conditions import monitored_device
from pytorch_to_triton.hardware.datasheets import datasheet
from pytorch_to_triton.hardware.versions import Versions, origin_of, today, versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.results import Destination, folder_for, owner_of, put_file, refuse_foreign_file
from pytorch_to_triton.schema.benchmark import (
    KERNEL,
    Benchmark,
    Conditions,
    TunedConfig,
)
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.timing import Ceilings, TimingTable
from pytorch_to_triton.schema.tuning import Origin, Tuning
from pytorch_to_triton.targets.describe import sentence
from pytorch_to_triton.targets.memory_limit import device_memory, refuse_cases_over

TOOL = "benchmark"
NO_DEVICE = (
    "This machine has no GPU that torch can use, so nothing can be timed.",
    "Name a GPU with estimate, such as --estimate H200, for the limits that follow from its data sheet.",
)


async def benchmark(
    worker: WorkerClient,
    request: BenchmarkRequest,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Benchmark:
    """Time the kernel and its baselines at every size, and compare it with the device's limit.

    Writes report.md, report.json and pictures. Raises MissingRequirement without a device, BadInput where a
    target or its declaration cannot be used.
    """
    installed = None if runtime.interpreter else await versions(worker, runtime)
    if installed is None or not installed.devices:
        raise MissingRequirement(*NO_DEVICE)
    refuse_nothing_to_freeze(request)
    refuse_foreign(request)
    async with monitored_device(installed.devices[0].uuid) as monitor:
        plan = await plan_benchmark(worker, request, runtime)
        refuse_cases_over(plan.cases, device_memory(installed.devices[0]))
        ceilings = await ceilings_of(worker, installed.devices[0].name, monitor.driver, runtime, listener)
        origin = origin_of(installed)
        tunings = await search(worker, plan, runtime, listener)
        configs = distinct(config for tuning in tunings for config in tuning.tuned)
        frozen = freeze(request, configs, origin)
        monitor.reset()
        measurement = await measure(worker, plan.trial(frozen), runtime, listener)
        conditions = monitor.conditions
    kernels = [size.implementations[KERNEL] for size in measurement.sizes if KERNEL in size.implementations]
    configs = distinct([*configs, *(config for kernel in kernels for config in kernel.tuned)])
    keep(request.candidate.path, configs, origin)
    known = [
        k.chosen for k in kept_configs(request.candidate.path, device=origin.device, triton=origin.triton)
    ]
    notes = [tuning.summary for tuning in tunings]
    try:
        frozen = frozen or freeze(request, distinct([*configs, *known]), origin)
    except BadInput as refusal:  # the figures are there, and worth keeping
        notes.append(f"Nothing was frozen. {refusal.message} {refusal.hint}")
    whole = benchmark_of(plan, installed, ceilings, conditions, measurement)
    added = {"tuned": tuple(configs), "frozen": frozen, "notes": tuple(notes)}
    return write_report(whole.model_copy(update=added), destination_of(request))


async def search(
    worker: WorkerClient, plan: BenchmarkPlan, runtime: Runtime, listener: ProgressListener | None
) -> list[Tuning]:
    """The search at each size in the time given for it; none where no time is."""
    request, results = plan.request, []
    for case in plan.cases if request.tune_seconds else ():
        asked = TuneRequest(
            target=request.candidate,
            reference=plan.reference,
            case=case,
            seed=plan.seed,
            seconds=request.tune_seconds or 0.0,
        )
        results.append(await tune(worker, asked, runtime, listener))
    return results


def refuse_nothing_to_freeze(request: BenchmarkRequest) -> None:
    """Raises BadInput, before anything is run, where a table is asked for and no kernel is autotuned."""
    path = request.candidate.path
    if request.freeze and not autotuned_kernels(path.read_text(encoding="utf-8"), str(path)):
        raise BadInput(
            f"{path} has no autotuned kernel whose choice could be frozen.",
            "Leave out freeze, or decorate the kernel with triton.autotune.",
        )


def freeze(request: BenchmarkRequest, configs: Sequence[TunedConfig], origin: Origin) -> Path | None:
    """Write the kernel file with these configurations, where that was asked for and there are any.

    Raises BadInput where the file cannot be rewritten.
    """
    if request.freeze is None or not configs:
        return None
    path = request.candidate.path
    text = frozen_source(path.read_text(encoding="utf-8"), configs, str(origin), str(path))
    owner = owner_of(TOOL, request.candidate, request.freeze.parent)
    put_file(request.freeze, text, owner, force=request.force)
    return request.freeze


def distinct(configs: Iterable[TunedConfig]) -> list[TunedConfig]:
    """The first configuration for each kernel and key: what a search found goes before Triton's choice."""
    by_key: dict[tuple[str, str], TunedConfig] = {}
    for config in configs:
        by_key.setdefault((config.kernel, repr(sorted(config.key.items()))), config)
    return list(by_key.values())


async def estimate(worker: WorkerClient, request: BenchmarkRequest, gpu: str, runtime: Runtime) -> Benchmark:
    """The limits of the same sizes on a GPU that need not be here, from its data sheet.

    A function without a reference is its own: none of them is run. Raises BadInput for a GPU that is not
    known, and where a target or its declaration cannot be used.
    """
    sheet = datasheet(gpu)
    refuse_foreign(request)
    try:
        plan = await plan_benchmark(worker, request, runtime)
    except TargetNotFound:
        if request.reference is not None or request.candidate.name is None:
            raise
        plan = await plan_benchmark(
            worker, request.model_copy(update={"reference": request.candidate}), runtime
        )
    sizes = [(case, work) for case in plan.cases if (work := plan.work(case, None))]
    if not sizes:
        raise BadInput(
            f"What {plan.reference} has to do at least is not known. {sentence(plan.why_no_graph)}",
            "Declare BYTES and FLOPS in the kernel file, such as FLOPS = '2 * M * N * K'.",
        )
    again = replay("benchmark", request, seed=None, estimate=gpu)
    estimated = estimate_speed(request, sheet, sizes).model_copy(update={"replay": again})
    return write_report(estimated, destination_of(request))


def destination_of(request: BenchmarkRequest) -> Destination:
    """Where the results go: `benchmarks/NAME` below the working directory by default."""
    target = request.candidate
    folder = request.into or Path("benchmarks") / (target.name or target.path.stem)
    return Destination(folder_for(folder), TOOL, target, request.force)


def refuse_foreign(request: BenchmarkRequest) -> None:
    """Raises BadInput, before anything is run, where something is there that may not be replaced."""
    destination_of(request).check()
    if request.freeze is not None:
        refuse_foreign_file(request.freeze, TOOL, force=request.force)


def tables_of(
    plan: BenchmarkPlan, measurement: Measurement, device: str, ceilings: Ceilings
) -> Iterator[TimingTable]:
    """One a size; of those that were not reached, why."""
    reached = {size.case: size for size in measurement.sizes}
    for case in plan.cases:
        size = reached.get(case.name) or not_reached(case, measurement.ended)
        work = plan.work(case, size)
        limit = limit_of(work, ceilings, tf32=plan.request.tf32) if work else None
        yield table_of(size, case, device, work, limit)


def benchmark_of(
    plan: BenchmarkPlan,
    versions: Versions,
    ceilings: Ceilings,
    conditions: Conditions,
    measurement: Measurement,
) -> Benchmark:
    """What a run found."""
    request, device = plan.request, versions.devices[0].name
    tables = add_flags(tuple(tables_of(plan, measurement, device, ceilings)))
    flags = tuple(of_conditions(conditions))
    kernel = str(request.candidate)
    return Benchmark(
        summary=summary_of(request.candidate.path.name, tables, flags),
        next_step=next_step_of(kernel, tables, flags),
        verdict=verdict_of(tables, flags),
        kernel=kernel,
        device=f"{device}, driver {conditions.driver or 'unknown'}, torch {versions.torch}, "
        f"Triton {versions.triton}, {today()}",
        passes=request.passes,
        precision=precision_of(tf32=request.tf32),
        provenance="measured with device events, with a cold L2 cache and new inputs for each call",
        tables=tables,
        flags=flags,
        ceilings=ceilings,
        conditions=conditions,
        seed=plan.seed,
        replay=replay("benchmark", request, seed=plan.seed),
    )


def not_reached(case: Case, why: str) -> SizeMeasured:
    """A size at which nothing was timed."""
    failed = {KERNEL: f"the run ended before: {why}"}
    return SizeMeasured(
        case=case.name, batch=0, empty_ms=0.0, implementations={}, failed=failed, check_note=""
    )
