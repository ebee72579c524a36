"""convert: a PyTorch function goes in, a validated Triton kernel with its report comes out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from pytorch_to_triton.convert.conversion_report import next_step_of, summary_of
from pytorch_to_triton.convert.finish.converted import Converted, module_name
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.convert.gates import gated
from pytorch_to_triton.convert.stages import Staged, stages_of
from pytorch_to_triton.convert.work import LAST, ConversionWork, timing_case
from pytorch_to_triton.convert.write_results import delivered, destination_of
from pytorch_to_triton.draft.file.module import Source
from pytorch_to_triton.draft.file.reference import Reference, function_reference, module_reference
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.hardware.versions import Versions, versions
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Declaration, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.conversion import Conversion, StageReport
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.first_call import refuse_unrunnable
from pytorch_to_triton.targets.memory_limit import refuse_too_large
from pytorch_to_triton.targets.problem import resolve_problem
from pytorch_to_triton.validate.conclusion import limit_sentences
from pytorch_to_triton.validate.replay import command


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
    """None: a fresh one, which the report names."""
    seconds: float = 300.0
    """How long one call of a kernel or of the reference may take, compilation and tuning included."""
    backward: bool = False
    """Whether gradients are drafted and validated too."""
    thorough: bool = False
    """Whether compute-sanitizer checks the last stage too, on a device."""
    pure: bool = False
    """Whether no library may compute what a kernel can."""
    strict: bool = False
    """Whether a target of which anything would stay a call of PyTorch is refused."""


async def convert(
    worker: WorkerClient,
    request: ConversionRequest,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Conversion:
    """Trace the target, draft and validate three stages, time them on a device, and write the results.

    Without a device every stage is validated under Triton's interpreter and no speed is reported. Raises
    NotConvertible where no pattern fits, BadInput where the target, its declaration or the folder for the
    results cannot be used.
    """
    destination = destination_of(request.target, request.into, force=request.force)
    destination.check()
    description = await describe(worker, request.target, "reference", runtime, seconds=request.seconds)
    refuse_unused_init(request.target, description)
    options, seconds = request.options, request.seconds
    problem = await resolve_problem(worker, description, None, options, runtime, seconds=seconds)
    declaration = problem.declaration
    await refuse_too_large(worker, declaration, runtime)
    traced = await traced_target(worker, request, declaration, runtime)
    seed = secrets.randbits(31) if request.seed is None else request.seed
    with destination.fresh() as fresh:
        work = ConversionWork(
            worker=worker,
            runtime=runtime,
            listener=listener,
            target=request.target,
            options=request.options,
            folder=fresh.folder,
            source=source_of(request.target, description, declaration, traced),
            traced=traced,
            declaration=declaration,
            seed=seed,
            seconds=request.seconds,
            backward=request.backward,
            thorough=request.thorough,
            pure=request.pure or request.strict,
        )
        if request.strict:
            refuse_calls(work)
        staged = await stages_of(work)
        conversion = concluded(work, staged, await versions(worker, runtime))
        source = work.source
        converted = Converted(
            target=request.target,
            description=description,
            declaration=declaration,
            graph=traced.graph,
            reference=source.reference,
            given=source.declared,
            backward=request.backward,
        )
        name = f"{module_name(traced.graph.function)}.py"
        return delivered(*finished(conversion, converted, name), fresh, name)


def finished(conversion: Conversion, converted: Converted, name: str) -> tuple[Conversion, Mapping[str, str]]:
    """What the last stage that passed becomes in the user's repository; nothing where none passed.

    Where no function can be made of it, the file `name` is the stage as it is, and a note says why.
    """
    passed = [stage.file for stage in conversion.stages if stage.passed]
    if not passed:
        return conversion, {}
    text = passed[-1].read_text(encoding="utf-8")
    try:
        return conversion, files(converted.recipe(text, drafted=True), measured="").texts
    except BadInput as refusal:
        note = f"{name} has `run` alone, without tests and fallback. {refusal.message}"
        return conversion.model_copy(update={"notes": (*conversion.notes, note)}), {name: text}


def refuse_calls(work: ConversionWork) -> None:
    """Raises NotConvertible where something would stay a call of PyTorch."""
    if left := work.drafted(1, PURE).left:
        raise NotConvertible(
            f"{work.traced.graph.function} would leave calls to PyTorch: {'; '.join(left)}.",
            "Leave out --strict to convert what is around them, or write kernels for them by hand.",
        )


def refuse_unused_init(target: Target, description: Description) -> None:
    """Raises BadInput where a function is given arguments of a class."""
    if target.init and description.kind not in ("module", "model_file"):
        raise BadInput(
            f"{target} is a function, and --init ({target.construction}) is for an nn.Module class.",
            "Leave out --init; a constant argument of the function is declared as --input eps=1e-5.",
        )


async def traced_target(
    worker: WorkerClient, request: ConversionRequest, declaration: Declaration, runtime: Runtime
) -> Traced:
    """The target's trace. Raises TargetBroken where the target does not even run, NotConvertible else."""
    try:
        return await trace(
            worker,
            request.target,
            declaration,
            runtime,
            seconds=request.seconds,
            backward=request.backward,
        )
    except NotConvertible:
        await refuse_unrunnable(worker, request.target, declaration, runtime, seconds=request.seconds)
        raise


def source_of(target: Target, description: Description, declaration: Declaration, traced: Traced) -> Source:
    """What the drafted files say about their origin."""
    return Source(
        target=str(target),
        reference=reference_of(target, description, traced),
        declared=declared(declaration, traced),
        timed=timing_case(declaration, traced.graph).dims,
        output_dtypes=traced.output_dtypes,
        tensor_dtypes=traced.tensor_dtypes,
        branches=traced.branches,
        backward=traced.backward,
    )


def reference_of(target: Target, description: Description, traced: Traced) -> Reference:
    """The target's source as the drafted file's `reference`."""
    text = target.path.read_text(encoding="utf-8")
    if description.kind not in ("module", "model_file"):
        return function_reference(text, description.name, own_modules(target.path))
    given = "*get_init_inputs()" if "def get_init_inputs" in text else ""
    # A file with get_inputs() says in which mode its module is called, too.
    mode = ".eval()" if description.examples is None else ""
    constructed = f"{description.name}({target.construction or given}){mode}"
    state = traced.graph.state
    return module_reference(text, description.name, state, constructed, own_modules(target.path))


def own_modules(path: Path) -> frozenset[str]:
    """Top-level modules and packages next to the target, or next to the package that holds it."""
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
            dtypes = "|".join(tensor.dtypes or (tensor.dtype,))
            inputs[tensor.name] = f"{dtypes}[{', '.join(tensor.shape.expressions)}]"
    return {
        "INPUTS": inputs,
        "DIMS": {name: list(sizes) for name, sizes in declaration.dims.items()},
        "REQUIRES": list(declaration.requires),
    }


def concluded(work: ConversionWork, staged: Staged, found: Versions) -> Conversion:
    """The conversion's outcome, from its stages."""
    table = staged.table
    stages = gated(staged.reports, table)
    passed = [s for s in stages if s.passed]
    kernel = work.folder / f"{module_name(work.traced.graph.function)}.py" if passed else None
    speed = "speed not measured" if table is None else "speed measured by device events"
    machine = stages[0].verdict.device if stages else "none"
    shown = passed[-1] if passed else stages[-1]
    again = work.request(LAST, shown.calls).model_copy(
        update={"candidate": Target(path=kernel or shown.file)}
    )
    return Conversion(
        summary=summary_of(work.traced.graph.function, stages, table),
        next_step=next_step_of(stages, kernel, table),
        verdict="converted" if passed and passed[-1].stage == LAST else "stopped",
        target=str(work.target),
        kernel=kernel,
        folder=work.folder,
        stages=stages,
        timing=table,
        device=f"{machine}; torch {found.torch}, Triton {found.triton}",
        notes=(
            *notes_of(work.traced.graph),
            *calls_left(shown),
            *limit_sentences(shown.verdict.limits),
            *([staged.ways] if staged.ways else []),
        ),
        provenance=f"correctness measured; {speed}",
        replay=command(again, work.runtime, work.seed, None),
    )


def calls_left(stage: StageReport) -> tuple[str, ...]:
    """What of the stage PyTorch computes."""
    return (f"Stage {stage.stage} leaves to PyTorch: {', '.join(stage.calls)}.",) if stage.calls else ()


def notes_of(graph: Graph) -> tuple[str, ...]:
    """What the trace holds for, and what the module does that no kernel of the draft does."""
    notes = [f"The trace holds only where {guard}." for guard in graph.guards]
    if graph.autocast:
        notes.append('torch.autocast("cuda") casts in the kernels as on a GPU; on a CPU it does nothing.')
    if updated := ", ".join(graph.updated):
        notes.append(f"The module in training also updates {updated}; only what it returns is converted.")
    return tuple(notes)
