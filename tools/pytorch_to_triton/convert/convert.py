"""convert: a PyTorch function goes in, a validated Triton kernel with its report comes out."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_to_triton.benchmark.limit import work_of
from pytorch_to_triton.benchmark.timing import Roof, Subject, Trial, measured, table_of
from pytorch_to_triton.convert.deliver import delivered, destination_of, kernel_file
from pytorch_to_triton.convert.draft.kernel import Config, Stage, Variant
from pytorch_to_triton.convert.draft.module import STAGE_NAMES, Drafted, Source, draft
from pytorch_to_triton.convert.draft.reference import Reference, function_reference, module_reference
from pytorch_to_triton.convert.gates import gated, label_of, refuse_unknown_names
from pytorch_to_triton.convert.report import EAGER, next_step_of, summary_of
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.first_call import refuse_unrunnable
from pytorch_to_triton.gpu.room import refuse_too_large
from pytorch_to_triton.gpu.target import declaration_of, describe
from pytorch_to_triton.gpu.versions import Versions, versions
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.schema.case import Case
from pytorch_to_triton.schema.conversion import Conversion, StageReport
from pytorch_to_triton.schema.declaration import NO_OPTIONS, Declaration, Options
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.expression import holds
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.timing_dims import timing_dims
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.validate.replay import command
from pytorch_to_triton.validate.validate import Request, validate

STAGES: tuple[Stage, ...] = (1, 2, 3)
TIMED_BYTES = 2**28
"""Inputs of a timing hold at least so many bytes, several times any L2 cache."""


class ConversionRequest(Value):
    """What to convert, and how."""

    target: Target
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it."""
    into: Path | None = None
    """The folder for the results; None: `converted/NAME` below the working directory."""
    force: bool = False
    """Whether files in it that no conversion of this target wrote may be replaced."""
    seed: int | None = None
    """None draws a fresh one, which the report names."""
    seconds: float = 300.0
    """How long one call of a kernel or of the reference may take, compilation and tuning included."""


async def convert(
    door: Door, request: ConversionRequest, mode: Mode, watch: Watch | None = None
) -> Conversion:
    """Trace the target, draft and validate three stages, time them on a device, and write the results.

    Without a device every stage is validated under Triton's interpreter and no speed is claimed. Raises
    NotConvertible where no pattern fits, BadInput where the target, its declaration or the folder for the
    results cannot be used.
    """
    destination = destination_of(request.target, request.into, force=request.force)
    destination.check()
    description = await describe(door, request.target, "reference", mode, seconds=request.seconds)
    declaration = declaration_of(description, description, request.options)
    await refuse_too_large(door, declaration, mode)
    traced = await followed(door, request, declaration, mode)
    source = source_of(request.target, description, declaration, traced)
    seed = secrets.randbits(31) if request.seed is None else request.seed
    with destination.fresh() as fresh:
        work = Work(door, request, mode, watch, fresh.folder, source, traced, declaration, seed)
        stages = [stage async for stage in work.stages()]
        table = await work.timed(stages)
        judged = gated(stages, table)
        conversion = concluded(work, judged, table, await versions(door, mode))
        return delivered(conversion, fresh, kernel_file(traced.graph.function))


async def followed(door: Door, request: ConversionRequest, declaration: Declaration, mode: Mode) -> Traced:
    """The target's trace. Raises TargetBroken where the target does not even run, NotConvertible else."""
    try:
        return await trace(door, request.target, declaration, mode, seconds=request.seconds)
    except NotConvertible:
        await refuse_unrunnable(door, request.target, declaration, mode, seconds=request.seconds)
        raise


@dataclass(frozen=True)
class Work:
    """One conversion on its way."""

    door: Door
    request: ConversionRequest
    mode: Mode
    watch: Watch | None
    folder: Path
    source: Source
    traced: Traced
    declaration: Declaration
    seed: int

    async def stages(self) -> Any:
        """Each stage drafted and validated, up to the first that fails."""
        for stage in STAGES:
            drafted = await self.drafted(stage)
            file = self.folder / f"stage{stage}_{STAGE_NAMES[stage]}.py"
            file.write_text(drafted.text, encoding="utf-8")
            refuse_unknown_names(drafted.text, file, (await versions(self.door, self.mode)).triton)
            report = await self.validated(stage, drafted, file)
            yield report
            if report.verdict.verdict != "passed":
                return

    async def drafted(self, stage: Stage) -> Drafted:
        """The stage's file; stage 3 with measured launch configurations where there is a device."""
        drafted = draft(self.traced.graph, self.source, stage)
        if stage < 3 or self.mode.interpreter:
            return drafted
        tuned: dict[str, Config] = {}
        dims = self.timing_case().dims
        for variant in (v for k in drafted.kernels for v in k.variants if holds(v.condition, dims)):
            tuned[variant.kernel] = await self.best_config(variant, tuned)
        return draft(self.traced.graph, await self.measured_source(), stage, tuned)

    async def best_config(self, variant: Variant, tuned: Mapping[str, Config]) -> Config:
        """The fastest configuration of one kernel at the timed size, the others as they are."""
        folder = self.folder / "tuning"
        folder.mkdir(exist_ok=True)
        subjects = [Subject(EAGER, self.request.target, "reference")]
        for number, config in enumerate(variant.candidates):
            file = folder / f"{variant.kernel}_{number}.py"
            text = draft(self.traced.graph, self.source, 3, {**tuned, variant.kernel: config}).text
            file.write_text(text, encoding="utf-8")
            subjects.append(Subject(str(number), Target(path=file), "candidate"))
        table = await self.side_by_side(tuple(subjects))
        fastest = min((t for t in table.timings if t.label != EAGER), key=lambda t: t.median_ms, default=None)
        return variant.candidates[int(fastest.label) if fastest else 0]

    async def measured_source(self) -> Source:
        """The source with a comment that says where the launch configurations come from."""
        found = await versions(self.door, self.mode)
        dims = " ".join(f"{k}={v}" for k, v in self.timing_case().dims.items())
        today = datetime.datetime.now(tz=datetime.UTC).date()
        where = f"{found.devices[0].name}, Triton {found.triton}, {today}, at {dims}"
        note = f"# Launch configurations measured on {where}."
        return Source(**{**vars(self.source), "note": note})

    def validation(self, file: Path) -> Request:
        """How a drafted file is validated."""
        return Request(
            candidate=Target(path=file),
            reference=self.request.target,
            options=self.request.options,
            seed=self.seed,
            seconds=self.request.seconds,
        )

    async def validated(self, stage: Stage, drafted: Drafted, file: Path) -> StageReport:
        """The stage's verdict; its speed is judged when all stages are timed."""
        request = self.validation(file)
        watch = StageWatch(self.watch, f"stage {stage} ({STAGE_NAMES[stage]})") if self.watch else None
        verdict = await validate(self.door, request, self.mode, watch)
        return StageReport(
            stage=stage,
            name=STAGE_NAMES[stage],
            file=file,
            kernels=tuple(k.name for k in drafted.kernels),
            passes=tuple(k.passes for k in drafted.kernels),
            passed=verdict.verdict == "passed",
            verdict=verdict,
            speed="not measured",
        )

    async def timed(self, stages: list[StageReport]) -> TimingTable | None:
        """Eager PyTorch and all validated stages side by side; None without a device."""
        right = [s for s in stages if s.verdict.verdict == "passed"]
        if self.mode.interpreter or not right:
            return None
        subjects = [Subject(EAGER, self.request.target, "reference")]
        subjects += [Subject(label_of(s.stage), Target(path=s.file), "candidate") for s in right]
        return await self.side_by_side(tuple(subjects))

    async def side_by_side(self, subjects: tuple[Subject, ...]) -> TimingTable:
        case = self.timing_case()
        trial = Trial(
            reference=self.request.target,
            subjects=subjects,
            cases=(case,),
            seed=self.seed,
            seconds=self.request.seconds,
        )
        found = await measured(self.door, trial, self.mode, self.watch)
        roof = Roof(work_of(self.traced.graph, case.dims, case.dtypes, None))
        device = (await versions(self.door, self.mode)).devices[0].name
        return table_of(found.sizes[0], case, device, roof)

    def timing_case(self) -> Case:
        """The largest declared sizes, enlarged until the inputs are large for a GPU."""
        dims = timing_dims(self.declaration, at_least_bytes=TIMED_BYTES)
        return Case(name="timing", group="declared", dims=dims, arguments=self.declaration.arguments(dims))


@dataclass(frozen=True)
class StageWatch:
    """Tells the caller's watch which stage the progress belongs to."""

    watch: Watch
    stage: str

    async def progress(self, done: float, total: float | None, message: str) -> None:
        await self.watch.progress(done, total, f"{self.stage}: {message}")

    async def item(self, result: dict[str, Any]) -> None:
        await self.watch.item(result)


def source_of(target: Target, description: Description, declaration: Declaration, traced: Traced) -> Source:
    """What the drafted files say about their origin."""
    return Source(
        target=str(target),
        reference=reference_of(target, description, traced),
        declared=declared(declaration, traced),
        output_dtypes=traced.output_dtypes,
    )


def reference_of(target: Target, description: Description, traced: Traced) -> Reference:
    """The target's source as the drafted file's `reference`."""
    text = target.path.read_text(encoding="utf-8")
    if description.kind not in ("module", "model_file"):
        return function_reference(text, description.name, own_modules(target.path))
    given = "*get_init_inputs()" if "def get_init_inputs" in text else ""
    constructed = f"{description.name}({given})"
    state = traced.graph.state
    return module_reference(text, description.name, state, constructed, own_modules(target.path))


def own_modules(path: Path) -> frozenset[str]:
    """Top-level modules and packages that lie beside the target, or beside the package that holds it."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    folders = {root, path.parent}
    return frozenset(
        entry.stem
        for folder in folders
        for entry in folder.iterdir()
        if entry.suffix == ".py" or any(entry.glob("*.py"))
    )


def declared(declaration: Declaration, traced: Traced) -> dict[str, object]:
    """INPUTS, DIMS and REQUIRES of the drafted files; a module's state becomes inputs."""
    inputs: dict[str, object] = {
        name: str(spec) if name in {i.name for i in traced.graph.inputs} else traced.graph.constants[name]
        for name, spec in declaration.inputs.items()
    }
    for tensor in traced.graph.inputs:
        if tensor.name in traced.graph.state:
            inputs[tensor.name] = f"{tensor.dtype}[{', '.join(tensor.shape.expressions)}]"
    return {
        "INPUTS": inputs,
        "DIMS": {name: list(sizes) for name, sizes in declaration.dims.items()},
        "REQUIRES": list(declaration.requires),
    }


def concluded(
    work: Work, stages: tuple[StageReport, ...], table: TimingTable | None, found: Versions
) -> Conversion:
    """What came of the stages."""
    passed = [s for s in stages if s.passed]
    kernel = work.folder / kernel_file(work.traced.graph.function) if passed else None
    speed = "speed not measured" if table is None else "speed measured by device events"
    machine = stages[0].verdict.device if stages else "none"
    again = work.validation(kernel or stages[-1].file)
    return Conversion(
        summary=summary_of(work.traced.graph.function, stages, table),
        next_step=next_step_of(stages, kernel, table),
        verdict="converted" if passed and passed[-1].stage == STAGES[-1] else "stopped",
        target=str(work.request.target),
        kernel=kernel,
        folder=work.folder,
        stages=stages,
        timing=table,
        device=f"{machine}; torch {found.torch}, Triton {found.triton}",
        notes=tuple(f"The trace holds only where {guard}." for guard in work.traced.graph.guards),
        obtained=f"correctness measured; {speed}",
        replay=command(again, work.mode, work.seed, None),
    )
