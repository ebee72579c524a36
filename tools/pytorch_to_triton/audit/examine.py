"""Compiling and running audited code whose inputs are known."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.audit.conclude import FileRun
from pytorch_to_triton.audit.evidence import CompiledCode, Evidence, MeasuredTarget, TimedTarget
from pytorch_to_triton.audit.source import SourceFile
from pytorch_to_triton.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.hardware.architectures import architecture
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inspect import inspect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.compiled import InspectedKernel
from pytorch_to_triton.schema.finding import CompiledFigures, EvidenceKind, Examination
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate import validate
from pytorch_to_triton.validate.request import ValidationRequest

DECLARING = frozenset({"INPUTS", "inputs", "get_inputs"})
"""A file that defines one of these declares the inputs of its `run`."""
NO_GPU = (
    "No GPU: nothing was timed, and neither scheduling races nor the compiled code's precision were tested."
)


@dataclass(frozen=True)
class Examiner:
    """How targets are compiled and run."""

    worker: WorkerClient
    runtime: Runtime
    reference: Target | None = None
    options: Options = NO_OPTIONS
    points: tuple[Point, ...] = ()
    """Sizes to compile at; none: the largest declared ones."""
    archs: tuple[str, ...] = ()
    seconds: float = 120.0
    listener: ProgressListener | None = None


@dataclass
class Examinations:
    """What compiling and running showed."""

    evidence: list[Evidence] = field(default_factory=list)
    examinations: list[Examination] = field(default_factory=list)
    compiled: list[CompiledFigures] = field(default_factory=list)
    timings: list[Benchmark] = field(default_factory=list)
    ran: dict[Path, FileRun] = field(default_factory=dict)
    """Files whose kernels were run."""
    notes: list[str] = field(default_factory=list)

    def run(self, file: SourceFile, verdict: Verdict) -> None:
        """Records that a target of a file was run, and with which verdict."""
        idle = idle_functions(file, verdict.behavior.kernels)
        clean = verdict.verdict == "passed"
        before = self.ran.get(file.path, FileRun(idle, clean))
        self.ran[file.path] = FileRun(before.idle & idle, before.clean and clean)

    def note(
        self, target: Target, kind: EvidenceKind, summary: str, provenance: str = "", replay: str = ""
    ) -> None:
        self.examinations.append(
            Examination(target=str(target), kind=kind, summary=summary, provenance=provenance, replay=replay)
        )


def idle_functions(file: SourceFile, ran: Collection[str]) -> frozenset[str]:
    """Launched kernels that did not run, and functions that launch only such kernels."""
    kernels = {kernel.name for kernel in file.kernels if kernel.is_launched} - set(ran)
    launching: defaultdict[str, set[str]] = defaultdict(set)
    for kernel in file.kernels:
        for launch in kernel.launches:
            if launch.function:
                launching[launch.function.name].add(kernel.name)
    return frozenset(kernels | {name for name, launched in launching.items() if launched <= kernels})


def declares_inputs(file: SourceFile) -> bool:
    """Whether a file itself declares what its kernels are called with."""
    return bool(DECLARING & file.scope.bindings.keys())


async def compile_target(examiner: Examiner, target: Target, file: SourceFile, into: Examinations) -> None:
    """Each kernel that the target launches, for each GPU, at each of the sizes."""
    for point, arch in product(examiner.points or (Point(),), examiner.archs):
        where = " at ".join(filter(None, (arch, point_name(point))))
        wanted = inspect.InspectionRequest(
            candidate=target,
            reference=examiner.reference,
            options=replace(examiner.options, dims={**examiner.options.dims, **point}),
            arch=arch,
            seconds=examiner.seconds,
        )
        try:
            inspection = await inspect.inspect(examiner.worker, wanted, examiner.runtime, examiner.listener)
        except Refusal as refusal:
            into.note(target, "compiled", f"Not compiled for {where}: {refusal.message}")
            continue
        summary = (
            inspection.summary
            if inspection.arch in inspection.summary
            else f"For {inspection.arch}: {inspection.summary}"
        )
        into.note(target, "compiled", summary, inspection.provenance)
        notes = (f"Compilation: {note}" for note in inspection.notes)
        into.notes += [note for note in notes if note not in into.notes]
        for kernel in inspection.kernels:
            source = file if kernel.compiled.file == file.path else None
            code = CompiledCode(kernel, architecture(arch), source, point_name(point))
            into.evidence.append(code)
            into.compiled += figures_of(kernel, code.where)


def figures_of(kernel: InspectedKernel, where: str) -> Sequence[CompiledFigures]:
    """One row; none where the kernel did not compile."""
    used = kernel.compiled.resources
    if used is None or kernel.instructions is None or kernel.occupancy is None:
        return ()
    loads = [a.bits for a in kernel.instructions.accesses if a.kind in ("load", "async_copy")]
    stores = [a.bits for a in kernel.instructions.accesses if a.kind == "store"]
    return (
        CompiledFigures(
            kernel=kernel.compiled.name,
            where=where,
            registers=used.registers,
            spill_bytes=used.spill_store_bytes,
            shared_bytes=used.shared_bytes,
            occupancy=kernel.occupancy.share,
            widest_load_bits=max(loads, default=None),
            widest_store_bits=max(stores, default=None),
        ),
    )


async def run_target(examiner: Examiner, target: Target, file: SourceFile, into: Examinations) -> None:
    """Runs every case of a validation; on a GPU, also times it against PyTorch."""
    wanted = ValidationRequest(
        candidate=target, reference=examiner.reference, options=examiner.options, seconds=examiner.seconds
    )
    try:
        verdict = await validate.validate(examiner.worker, wanted, examiner.runtime, examiner.listener)
    except Refusal as refusal:
        into.note(target, "measured", f"Not run: {refusal.message}")
        return
    into.note(target, "measured", verdict.summary, verdict.provenance, verdict.replay)
    into.evidence.append(MeasuredTarget(target, file, verdict))
    into.run(file, verdict)
    if examiner.runtime.interpreter:
        into.notes += [NO_GPU] if NO_GPU not in into.notes else []
    elif verdict.verdict == "passed":
        await time_target(examiner, target, file, into)


async def time_target(examiner: Examiner, target: Target, file: SourceFile, into: Examinations) -> None:
    """Times it against PyTorch."""
    wanted = BenchmarkRequest(
        candidate=target,
        reference=examiner.reference,
        options=examiner.options,
        baselines=("eager", "compile"),
        seconds=examiner.seconds,
        into=places.cache() / "audit" / "timings" / sha256(str(target).encode()).hexdigest()[:16],
    )
    try:
        result = await benchmark.benchmark(examiner.worker, wanted, examiner.runtime, examiner.listener)
    except Refusal as refusal:
        into.note(target, "measured", f"Not timed: {refusal.message}")
        return
    into.note(target, "measured", result.summary, result.provenance, result.replay)
    into.evidence.append(TimedTarget(target, file, result))
    into.timings.append(result)
