"""benchmark: is a kernel faster than its baselines, and how near is it to the limit of the device?"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.benchmark.ceilings import ceilings_of
from pytorch_to_triton.benchmark.estimate import EstimatedSize, EstimateSetting, estimated
from pytorch_to_triton.benchmark.flags import flagged, of_conditions
from pytorch_to_triton.benchmark.measurement import Measurement, SizeMeasured
from pytorch_to_triton.benchmark.passes import work_of_case
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.roofline import DeclaredWork, limit_of, precision_of
from pytorch_to_triton.benchmark.size_sweep import sweep
from pytorch_to_triton.benchmark.speed_report import written
from pytorch_to_triton.benchmark.timing_trial import Implementation, Roof, TimingTrial, measured, table_of
from pytorch_to_triton.benchmark.tuning.freeze import autotuned
from pytorch_to_triton.benchmark.tuning.freeze import frozen as frozen_source
from pytorch_to_triton.benchmark.tuning.tune import TuneRequest, tune
from pytorch_to_triton.benchmark.tuning.tuned import keep, kept
from pytorch_to_triton.benchmark.verdict import next_step_of, summary_of, verdict_of
from pytorch_to_triton.command_line import replay
from pytorch_to_triton.errors import BadInput, MissingRequirement, Refusal, TargetNotFound
from pytorch_to_triton.graph.tracing import graph_of
from pytorch_to_triton.hardware.conditions import monitored_device
from pytorch_to_triton.hardware.datasheets import datasheet
from pytorch_to_triton.hardware.versions import Versions, versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.results import Destination, folder_for, owner_of, put_file, refuse_foreign_file
from pytorch_to_triton.schema.benchmark import (
    COMPILE,
    EAGER,
    FROZEN,
    KERNEL,
    MAX_AUTOTUNE,
    Benchmark,
    Conditions,
    TunedConfig,
)
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork, TimingTable
from pytorch_to_triton.schema.tuning import Origin, Tuning
from pytorch_to_triton.targets.describe import examples_case, sentence
from pytorch_to_triton.targets.first_call import refuse_unrunnable
from pytorch_to_triton.targets.memory_limit import device_memory, refuse_cases_over
from pytorch_to_triton.targets.problem import reference_of, resolve_problem

COMPILED = {COMPILE: "default", MAX_AUTOTUNE: "max-autotune-no-cudagraphs"}
"""Modes of torch.compile by label; a CUDA graph would copy its inputs, which the kernel need not."""
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
    found = None if runtime.interpreter else await versions(worker, runtime)
    if found is None or not found.devices:
        raise MissingRequirement(*NO_DEVICE)
    refuse_nothing_to_freeze(request)
    refuse_foreign(request)
    async with monitored_device(found.devices[0].uuid) as monitor:
        plan = await planned(worker, request, runtime)
        refuse_cases_over(plan.cases, device_memory(found.devices[0]))
        ceilings = await ceilings_of(worker, found.devices[0].name, monitor.driver, runtime, listener)
        origin = Origin(device=found.devices[0].name, triton=found.triton, day=today())
        tunings = await searched(worker, plan, runtime, listener)
        configs = distinct(config for tuning in tunings for config in tuning.tuned)
        frozen = freeze(request, configs, origin)
        monitor.reset()
        measurement = await measured(worker, plan.trial(frozen), runtime, listener)
        conditions = monitor.conditions
    configs = distinct([*configs, *configs_in(measurement)])
    keep(request.candidate.path, configs, origin)
    known = [one.chosen for one in kept(request.candidate.path, device=origin.device, triton=origin.triton)]
    notes = [tuning.summary for tuning in tunings]
    try:
        frozen = frozen or freeze(request, distinct([*configs, *known]), origin)
    except BadInput as refusal:  # the figures are there, and worth keeping
        notes.append(f"Nothing was frozen. {refusal.message} {refusal.hint}")
    run = BenchmarkRun(plan, found, ceilings, conditions, measurement)
    whole = run.benchmark(configs).model_copy(update={"frozen": frozen, "notes": tuple(notes)})
    return written(whole, destination_of(request))


async def searched(
    worker: WorkerClient, plan: BenchmarkPlan, runtime: Runtime, listener: ProgressListener | None
) -> list[Tuning]:
    """The search at each size in the time given for it; none where no time is."""
    request, found = plan.request, []
    for case in plan.cases if request.tune_seconds else ():
        asked = TuneRequest(
            target=request.candidate,
            reference=plan.reference,
            case=case,
            seed=plan.seed,
            seconds=request.tune_seconds or 0.0,
        )
        found.append(await tune(worker, asked, runtime, listener))
    return found


def refuse_nothing_to_freeze(request: BenchmarkRequest) -> None:
    """Raises BadInput, before anything is run, where a table is asked for and no kernel is autotuned."""
    path = request.candidate.path
    if request.freeze and not autotuned(path.read_text(encoding="utf-8"), str(path)):
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


def configs_in(measurement: Measurement) -> Iterator[TunedConfig]:
    """What the kernel's own autotuning chose."""
    for size in measurement.sizes:
        if KERNEL in size.implementations:
            yield from size.implementations[KERNEL].tuned


def distinct(configs: Iterable[TunedConfig]) -> list[TunedConfig]:
    """The first configuration for each kernel and key: what a search found goes before Triton's choice."""
    by_key: dict[tuple[str, str], TunedConfig] = {}
    for config in configs:
        by_key.setdefault((config.kernel, repr(sorted(config.key.items()))), config)
    return list(by_key.values())


def today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()


async def estimate(worker: WorkerClient, request: BenchmarkRequest, gpu: str, runtime: Runtime) -> Benchmark:
    """The limits of the same sizes on a GPU that need not be here, from its data sheet.

    A function without a reference is its own: none of them is run. Raises BadInput for a GPU that is not
    known, and where a target or its declaration cannot be used.
    """
    sheet = datasheet(gpu)
    refuse_foreign(request)
    try:
        plan = await planned(worker, request, runtime)
    except TargetNotFound:
        if request.reference is not None or request.candidate.name is None:
            raise
        plan = await planned(worker, request.model_copy(update={"reference": request.candidate}), runtime)
    sizes = [
        EstimatedSize(case.dims, case.dtypes, work) for case in plan.cases if (work := plan.work(case, None))
    ]
    if not sizes:
        raise BadInput(
            f"What {plan.reference} has to do at least is not known. {sentence(plan.why_no_graph)}",
            "Declare BYTES and FLOPS in the kernel file, such as FLOPS = '2 * M * N * K'.",
        )
    again = replay("benchmark", request, seed=None, estimate=gpu)
    setting = EstimateSetting(str(request.candidate), request.passes, request.tf32, again)
    return written(estimated(setting, sheet, sizes), destination_of(request))


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


async def planned(worker: WorkerClient, request: BenchmarkRequest, runtime: Runtime) -> BenchmarkPlan:
    """What is to be timed, at which sizes."""
    target = reference_of(request.candidate, request.reference)
    problem = await resolve_problem(
        worker,
        request.candidate,
        target,
        request.options.at(request.points),
        runtime,
        seconds=request.seconds,
    )
    graph, why = await traced(worker, target, problem.declaration, runtime, request.seconds)
    joint = None
    if graph is not None and request.passes != "forward":
        joint = await traced_joint(worker, target, problem.declaration, runtime, request.seconds)
    seed = secrets.randbits(31) if request.seed is None else request.seed
    cases = tuple(cases_of(problem.reference, problem.declaration, request))
    sides = problem.candidate, problem.reference
    return BenchmarkPlan(request, target, sides, cases, graph, joint, why, seed)


async def traced(
    worker: WorkerClient, target: Target, declaration: Declaration, runtime: Runtime, seconds: float
) -> tuple[Graph | None, str]:
    """The reference's graph, else why there is none: its bytes are then those of inputs and outputs.

    Raises TargetBroken where the reference does not even run.
    """
    if not declaration.inputs:
        return None, "the file generates its own inputs"
    try:
        return await graph_of(worker, target, declaration, runtime, seconds=seconds), ""
    except Refusal as refusal:
        await refuse_unrunnable(worker, target, declaration, runtime, seconds=seconds)
        return None, refusal.message


async def traced_joint(
    worker: WorkerClient, target: Target, declaration: Declaration, runtime: Runtime, seconds: float
) -> Graph | None:
    """The reference's graph with its gradients; None where it cannot be traced with them."""
    try:
        return await graph_of(worker, target, declaration, runtime, seconds=seconds, backward=True)
    except Refusal:
        return None


def cases_of(reference: Description, declaration: Declaration, request: BenchmarkRequest) -> Iterator[Case]:
    """One a size, smallest first."""
    if not declaration.inputs and (case := examples_case(reference)):
        yield case
        return
    for point in sweep(declaration, request.options, request.points):
        arguments = declaration.arguments(point)
        yield Case(name=point_name(point) or "base", group="declared", dims=point, arguments=arguments)


@dataclass(frozen=True)
class BenchmarkPlan:
    """A benchmark before it is run."""

    request: BenchmarkRequest
    reference: Target
    descriptions: tuple[Description, Description]
    """Of the kernel and of the reference."""
    cases: tuple[Case, ...]
    graph: Graph | None
    joint: Graph | None
    """With its gradients, where these are timed and can be traced."""
    why_no_graph: str
    seed: int

    def trial(self, frozen: Path | None) -> TimingTrial:
        """The kernel, its baselines, and what else it is compared with, such as a `frozen` copy."""
        baselines = [Implementation(EAGER, self.reference, "reference")] * ("eager" in self.request.baselines)
        baselines += [
            Implementation(label, self.reference, "reference", compiled)
            for label, compiled in COMPILED.items()
            if label.replace("compile ", "") in self.request.baselines
        ]
        name = self.request.candidate.name
        copies = [Implementation(FROZEN, Target(path=frozen, name=name), "candidate")] if frozen else []
        others = [
            Implementation(label, target, "candidate") for label, target in labelled(self.request.against)
        ]
        return TimingTrial(
            reference=self.reference,
            implementations=(
                Implementation(KERNEL, self.request.candidate, "candidate"),
                *baselines,
                *others,
                *copies,
            ),
            cases=self.cases,
            seed=self.seed,
            seconds=self.request.seconds,
            passes=self.request.passes,
            tf32=self.request.tf32,
        )

    def work(self, case: Case, seen: SizeMeasured | None) -> MinimalWork | None:
        """What a case has to do at least: declared, counted, or the bytes of what was passed and returned."""
        work = work_of_case(self.graph, case, self.request.passes, self.declared(), self.joint)
        if work is None and seen and seen.implementations:
            one = next(iter(seen.implementations.values()))
            moved = one.input_bytes + one.output_bytes
            provenance = f"bytes of inputs and outputs; operations unknown: {self.why_no_graph}"
            return MinimalWork(bytes_moved=moved, flops={}, provenance=provenance)
        return work

    def declared(self) -> DeclaredWork | None:
        """BYTES and FLOPS of the kernel's file, else of the reference's."""
        for side in self.descriptions:
            if side.bytes_moved or side.flops:
                return DeclaredWork(side.target.path.name, side.bytes_moved, side.flops)
        return None


@dataclass(frozen=True)
class BenchmarkRun:
    """A benchmark that was run."""

    plan: BenchmarkPlan
    versions: Versions
    ceilings: Ceilings
    conditions: Conditions
    measurement: Measurement

    def benchmark(self, configs: Sequence[TunedConfig]) -> Benchmark:
        """What it found."""
        request, plan = self.plan.request, self.plan
        tables = flagged(tuple(self.tables()))
        flags = tuple(of_conditions(self.conditions))
        kernel = str(request.candidate)
        return Benchmark(
            summary=summary_of(request.candidate.path.name, tables, flags),
            next_step=next_step_of(kernel, tables, flags),
            verdict=verdict_of(tables, flags),
            kernel=kernel,
            device=self.where(),
            passes=request.passes,
            precision=precision_of(tf32=request.tf32),
            provenance="measured with device events, with a cold L2 cache and new inputs for each call",
            tables=tables,
            flags=flags,
            ceilings=self.ceilings,
            conditions=self.conditions,
            tuned=tuple(configs),
            seed=plan.seed,
            replay=replay("benchmark", request, seed=plan.seed),
        )

    def tables(self) -> Iterator[TimingTable]:
        """One a size; of those that were not reached, why."""
        reached = {size.case: size for size in self.measurement.sizes}
        for case in self.plan.cases:
            size = reached.get(case.name) or not_reached(case, self.measurement.ended)
            work = self.plan.work(case, size)
            limit = limit_of(work, self.ceilings, tf32=self.plan.request.tf32) if work else None
            yield table_of(size, case, self.device, Roof(work, limit))

    @property
    def device(self) -> str:
        """The GPU's name."""
        return self.versions.devices[0].name

    def where(self) -> str:
        """GPU, driver, versions and date."""
        driver = self.conditions.driver or "unknown"
        return (
            f"{self.device}, driver {driver}, torch {self.versions.torch}, "
            f"Triton {self.versions.triton}, {today()}"
        )


def not_reached(case: Case, why: str) -> SizeMeasured:
    """A size at which nothing was timed."""
    failed = {KERNEL: f"the run ended before: {why}"}
    return SizeMeasured(
        case=case.name, batch=0, empty_ms=0.0, implementations={}, failed=failed, check_note=""
    )


def labelled(targets: Sequence[Target]) -> Iterator[tuple[str, Target]]:
    """Each target with a short name, numbered where two have the same."""
    taken: set[str] = {KERNEL, FROZEN, EAGER, *COMPILED}
    for target in targets:
        wanted = f"{target.path.stem}:{target.name}" if target.name else target.path.stem
        label, number = wanted, 1
        while label in taken:
            number += 1
            label = f"{wanted} {number}"
        taken.add(label)
        yield label, target
