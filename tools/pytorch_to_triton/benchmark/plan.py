"""What a benchmark is to time: the kernel and its baselines, the sizes, and the work of each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.roofline import DeclaredWork, work_of_case
from pytorch_to_triton.benchmark.timing_trial import Implementation, TimingTrial
from pytorch_to_triton.benchmark.trust import SizeMeasured
from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.graph.cost import held_bytes
from pytorch_to_triton.graph.tracing import graph_of
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.inputs.sizes import Point, largest_point, smallest_first
from pytorch_to_triton.inputs.timing_dims import HeldBytes, named_points, timing_dims
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import (
    COMPILE,
    EAGER,
    FROZEN,
    KERNEL,
    MAX_AUTOTUNE,
)
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import MinimalWork
from pytorch_to_triton.targets.describe import (
    EXPORT,
    GRADIENTS,
    TargetProcess,
    describe,
    examples_case,
    open_target,
)
from pytorch_to_triton.targets.first_call import refuse_unrunnable
from pytorch_to_triton.targets.problem import problem_of, reference_of
from pytorch_to_triton.worker.wire.comparison import Unordered

COMPILED = {COMPILE: "default", MAX_AUTOTUNE: "max-autotune-no-cudagraphs"}
"""Modes of torch.compile by label; a CUDA graph would copy its inputs, which the kernel need not."""
AT_LEAST_BYTES = (0, 2**22, 2**25, 2**28)
"""Of the inputs or the largest value, where the caller names no sizes: as declared, in the cache, past it,
far past it."""


async def plan_benchmark(worker: WorkerClient, request: BenchmarkRequest, runtime: Runtime) -> BenchmarkPlan:
    """What is to be timed, at which sizes."""
    target, seconds = reference_of(request.candidate, request.reference), request.seconds
    needs = EXPORT if request.passes == "forward" else GRADIENTS
    async with open_target(worker, target, "reference", runtime, seconds=seconds, needs=needs) as process:
        candidate = await describe(worker, request.candidate, "candidate", runtime, seconds=seconds)
        problem = problem_of(process.description, candidate, request.options.at(request.points))
        graph, why = await trace_work(process, problem.declaration)
        joint = None
        if graph is not None and request.passes != "forward":
            joint, _ = await trace_work(process, problem.declaration, backward=True)
    if why and problem.declaration.inputs:
        await refuse_unrunnable(worker, target, problem.declaration, runtime, seconds=seconds)
    seed = secrets.randbits(31) if request.seed is None else request.seed
    cases = tuple(cases_of(problem.reference, problem.declaration, request, graph))
    sides = problem.candidate, problem.reference
    free = problem.declaration.unordered
    return BenchmarkPlan(request, target, sides, cases, graph, joint, why, seed, free)


async def trace_work(
    process: TargetProcess, declaration: Declaration, *, backward: bool = False
) -> tuple[Graph | None, str]:
    """The reference's graph, with `backward` that of its gradients too; else why there is none.

    The bytes of what has no graph are those of inputs and outputs.
    """
    if not declaration.inputs:
        return None, "the file generates its own inputs"
    try:
        return await graph_of(process, declaration, backward=backward), ""
    except Refusal as refusal:
        return None, refusal.message


def cases_of(
    reference: Description, declaration: Declaration, request: BenchmarkRequest, graph: Graph | None
) -> Iterator[Case]:
    """One a size, smallest first."""
    if not declaration.inputs and (case := examples_case(reference)):
        yield case
        return
    for point in sweep(declaration, request.options, request.points, held_bytes(graph)):
        yield declaration.case(point)


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
    unordered: tuple[Unordered, ...] = ()
    """Results whose order is declared free."""

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
            Implementation(label, target, "candidate")
            for label, target in label_targets(self.request.against)
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
            unordered=self.unordered,
            passes=self.request.passes,
            tf32=self.request.tf32,
        )

    def work(self, case: Case, seen: SizeMeasured | None) -> MinimalWork | None:
        """What a case has to do at least: declared, counted, or the bytes of what was passed and returned."""
        work = work_of_case(self.graph, case, self.request.passes, self.declared_work(), self.joint)
        if work is None and seen and seen.implementations:
            measured = next(iter(seen.implementations.values()))
            moved = measured.input_bytes + measured.output_bytes
            provenance = f"bytes of inputs and outputs; operations unknown: {self.why_no_graph}"
            return MinimalWork(bytes_moved=moved, flops={}, provenance=provenance)
        return work

    def declared_work(self) -> DeclaredWork | None:
        """BYTES and FLOPS of the kernel's file, else of the reference's."""
        for side in self.descriptions:
            if side.bytes_moved or side.flops:
                return DeclaredWork(side.target.path.name, side.bytes_moved, side.flops)
        return None


def label_targets(targets: Sequence[Target]) -> Iterator[tuple[str, Target]]:
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


def sweep(
    declaration: Declaration,
    options: Options,
    named: Sequence[Point] = (),
    held: HeldBytes | None = None,
) -> tuple[Point, ...]:
    """The points to time, smallest inputs first.

    `named` points are taken as `named_points` has them. Of sizes that the caller named alone, one dimension
    varies at a time, the others at their largest. Otherwise the largest declared sizes, and larger ones, by
    the inputs and what is `held` besides. Raises BadInput where named sizes do not meet the requirements.
    """
    if named:
        return named_points(declaration, named)
    if not options.dims:
        grown = (timing_dims(declaration, at_least_bytes=size, held=held) for size in AT_LEAST_BYTES)
        return smallest_first(grown)
    wanted = points_asked_for(declaration, options)
    points = smallest_first(point for point in wanted if declaration.violated(point) is None)
    if not points:
        raise BadInput(
            "None of the named sizes meets the requirements: " + "; ".join(declaration.requires),
            "Name other sizes.",
        )
    return points


def points_asked_for(declaration: Declaration, options: Options) -> Iterator[Point]:
    """The largest point, and from there every size that was named."""
    largest = largest_point(declaration.dims)
    for name in options.dims:
        for size in sorted(declaration.dims[name]):
            yield {**largest, name: size}
