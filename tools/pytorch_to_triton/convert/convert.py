"""convert: a PyTorch function goes in, a validated Triton kernel with its report comes out."""

from __future__ import annotations

import secrets
from pathlib import Path

from pytorch_to_triton.convert.draft.module import Source, snake
from pytorch_to_triton.convert.draft.reference import Reference, function_reference, module_reference
from pytorch_to_triton.convert.gates import gated
from pytorch_to_triton.convert.report import markdown, next_step_of, summary_of
from pytorch_to_triton.convert.stages import LAST, Work, stages_of
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.target import declaration_of, describe
from pytorch_to_triton.gpu.versions import Versions, versions
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.schema.conversion import Conversion, StageReport
from pytorch_to_triton.schema.declaration import NO_OPTIONS, Declaration, Options
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.value import Value


class ConversionRequest(Value):
    """What to convert, and how."""

    target: Target
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it."""
    into: Path | None = None
    """The folder for the results; None: `converted/NAME` below the working directory."""
    seed: int | None = None
    """None draws a fresh one, which the report names."""
    seconds: float = 300.0
    """How long one call of a kernel or of the reference may take, compilation and tuning included."""
    thorough: bool = False
    """Whether compute-sanitizer watches the last stage too, on a device."""


async def convert(
    door: Door, request: ConversionRequest, mode: Mode, watch: Watch | None = None
) -> Conversion:
    """Trace the target, draft and validate three stages, time them on a device, and write the results.

    Without a device every stage is validated under Triton's interpreter and no speed is claimed. Raises
    NotConvertible where no pattern fits, BadInput where the target or its declaration cannot be used.
    """
    description = await describe(door, request.target, "reference", mode)
    declaration = declaration_of(description, description, request.options)
    traced = await trace(door, request.target, declaration, mode)
    folder = (request.into or Path("converted") / snake(traced.graph.function)).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(
            f"The folder {folder} cannot be made: {problem.strerror}.", "Name another folder with --into."
        ) from problem
    seed = secrets.randbits(31) if request.seed is None else request.seed
    work = Work(
        door=door,
        mode=mode,
        watch=watch,
        target=request.target,
        options=request.options,
        folder=folder,
        source=source_of(request.target, description, declaration, traced),
        traced=traced,
        declaration=declaration,
        seed=seed,
        seconds=request.seconds,
        thorough=request.thorough,
    )
    stages, table = await stages_of(work)
    return written(work, gated(stages, table), table, await versions(door, mode))


def source_of(target: Target, description: Description, declaration: Declaration, traced: Traced) -> Source:
    """What the drafted files say about their origin."""
    return Source(
        target=str(target),
        reference=reference_of(target, description, traced),
        declared=declared(declaration, traced),
        output_dtypes=traced.output_dtypes,
        branches=traced.branches,
    )


def reference_of(target: Target, description: Description, traced: Traced) -> Reference:
    """The target's source as the drafted file's `reference`."""
    text = target.path.read_text(encoding="utf-8")
    if description.kind not in ("module", "model_file"):
        return function_reference(text, description.name, own_modules(target.path))
    given = "*get_init_inputs()" if "def get_init_inputs" in text else ""
    constructed = f"{description.name}({target.construction or given})"
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


def written(
    work: Work, stages: tuple[StageReport, ...], table: TimingTable | None, found: Versions
) -> Conversion:
    """The conversion, with the kernel file and both reports on disk."""
    passed = [s for s in stages if s.passed]
    kernel = work.folder / f"{snake(work.traced.graph.function)}_triton.py" if passed else None
    if kernel is not None:
        kernel.write_text(passed[-1].file.read_text(encoding="utf-8"), encoding="utf-8")
    target = str(work.target)
    speed = "speed not measured" if table is None else "speed measured by device events"
    machine = stages[0].verdict.device if stages else "none"
    conversion = Conversion(
        summary=summary_of(work.traced.graph.function, stages, table),
        next_step=next_step_of(stages, kernel, table),
        verdict="converted" if passed and passed[-1].stage == LAST else "stopped",
        target=target,
        kernel=kernel,
        folder=work.folder,
        stages=stages,
        timing=table,
        device=f"{machine}; torch {found.torch}, Triton {found.triton}",
        notes=tuple(f"The trace holds only where {guard}." for guard in work.traced.graph.guards),
        obtained=f"correctness measured; {speed}",
    )
    (work.folder / "report.md").write_text(markdown(conversion), encoding="utf-8")
    (work.folder / "report.json").write_text(conversion.model_dump_json(indent=2), encoding="utf-8")
    return conversion
