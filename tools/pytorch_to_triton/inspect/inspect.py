"""inspect: what does the compiler make of a kernel, on any GPU, and what does a profiler say on this one?"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.errors import BadInput, TargetBroken, TargetNotFound
from pytorch_to_triton.hardware.architectures import DEFAULT, Architecture, architecture, present
from pytorch_to_triton.hardware.datasheets import DataSheet
from pytorch_to_triton.hardware.versions import Versions, versions
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Declaration, Options
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.inspect.assembly import read_amdgcn, read_ptx
from pytorch_to_triton.inspect.compiling import Compiled, Compiling, compile_kernels, compiled_otherwise
from pytorch_to_triton.inspect.estimate import Launch, estimate, sheet_of
from pytorch_to_triton.inspect.executed_ptx import ran
from pytorch_to_triton.inspect.executed_sections import executed_sections
from pytorch_to_triton.inspect.occupancy import occupancy_of
from pytorch_to_triton.inspect.pages import line_of, page_of, refuse_foreign
from pytorch_to_triton.inspect.remarks import KernelReading, plural, refusal, remarks_on
from pytorch_to_triton.inspect.sass import read_sass
from pytorch_to_triton.inspect.ttgir import (
    SourceRows,
    block_accesses,
    dots,
    float_atomics,
    loops,
    short_sums,
)
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.profilers import profile as profilers
from pytorch_to_triton.schema.compiled import CompiledKernel, InspectedKernel, Inspection, TextKind
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.profile import Profiler
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.targets.describe import describe, examples_case
from pytorch_to_triton.targets.problem import problem_of, reference_of
from pytorch_to_triton.worker.wire import Failure


class InspectionRequest(Value):
    """What to inspect, and how."""

    candidate: Target
    reference: Target | None = None
    """Whose file declares the inputs; None: the candidate's own."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it. The largest of several sizes."""
    arch: str | None = None
    """A name that hardware/architectures.py knows; None: the GPU that is here, else sm_90."""
    kernel: str | None = None
    """Only this one: a kernel's name, or its label in an earlier result; None: all that the call launches."""
    text: TextKind | None = None
    """Also a page of this text, of the first kernel."""
    page: int = 1
    profile: Profiler | None = None
    """Also run the call on the GPU that is here, under this profiler."""
    backward: bool = False
    """Also the kernels of the call's backward pass."""
    what_if: tuple[dict[str, int], ...] = ()
    """Also the same launches with each of these launch options and constexprs."""
    seconds: float = 120.0
    """How long the call, with its compilations, may take in each process."""
    most_configurations: int = 32
    """Of autotuned kernels."""


@dataclass(frozen=True)
class InspectedCall:
    """The call whose kernels are compiled."""

    declaring: Target | None
    """Whose file declares the inputs; None: the candidate's."""
    case: Case
    notes: tuple[str, ...] = ()
    """What it leaves out."""


async def inspect(
    worker: WorkerClient,
    request: InspectionRequest,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Inspection:
    """Compile each kernel that the target launches, for any GPU, and read the compiler's texts.

    No GPU is needed: the target is called once on CPU tensors, and its launches are compiled instead of run.
    What the compiler refuses is in the result; a target, an arch or a size that cannot be used is refused:
    BadInput. Raises MissingRequirement where a profiler is asked for that cannot work here.
    """
    named = architecture(request.arch) if request.arch else None
    if named and request.text:
        refuse_foreign(request.text, named)
    compiled_runtime = runtime.model_copy(update={"interpreter": False})
    installed, call = await _read_versions_and_call(worker, request, runtime, compiled_runtime)
    if request.profile:
        profilers.require(request.profile, installed.devices[0] if installed.devices else None)
    gpu = named or present(installed.devices, installed.rocm) or architecture(DEFAULT)
    if request.text:
        refuse_foreign(request.text, gpu)
    compiling = Compiling(
        worker=worker,
        runtime=compiled_runtime,
        candidate=request.candidate,
        declaring=call.declaring,
        case=call.case,
        gpu=gpu,
        most_configurations=request.most_configurations,
        seconds=request.seconds,
        listener=listener,
        backward=request.backward,
    )
    compiled = await compile_kernels(compiling)
    refuse_nothing(compiled, request, call.case)
    sheet = sheet_of([request.arch, *(device.name for device in installed.devices if not named)], gpu)
    kernels = choose(read_all(compiled.kernels, gpu, sheet), request.kernel)
    otherwise = await compiled_otherwise(compiling, compiled.kernels, request.what_if)
    others = tuple(
        k for compiled in otherwise for k in choose(read_all(compiled, gpu, sheet), request.kernel)
    )
    side_by_side = sorted((*kernels, *others), key=lambda kernel: kernel.compiled.number)
    profile = None
    if request.profile:
        profile = await profilers.run_profiler(
            worker,
            request.profile,
            compiling.call,
            compiled_runtime,
            seconds=request.seconds,
            listener=listener,
        )
    return Inspection(
        summary=summary_of(kernels, gpu),
        next_step=next_step_of(kernels, request),
        verdict="refused" if any(k.compiled.failure for k in kernels) else "compiled",
        lines=tuple(map(line_of, side_by_side)),
        target=str(request.candidate),
        arch=gpu.name,
        dims=call.case.dims,
        provenance=f"compiled: by Triton {installed.triton} for {gpu.name} ({gpu.part}); nothing was run",
        kernels=tuple(side_by_side),
        notes=(*call.notes, *notes_of(compiled, named, gpu), *compiled.notes),
        page=page_of(with_text(kernels, request.text), request.text, request.page) if request.text else None,
        profile=profile,
    )


async def _read_versions_and_call(
    worker: WorkerClient, request: InspectionRequest, runtime: Runtime, compiled_runtime: Runtime
) -> tuple[Versions, InspectedCall]:
    """What the worker runs on, and the call. Workers take seconds to start: both start together."""
    installed: list[Versions] = []

    async def ask_versions() -> None:
        installed.append(await versions(worker, compiled_runtime))

    async with task_group() as group:
        group.start_soon(ask_versions)
        call = await _call_of(worker, request, runtime)
    return installed[0], call


async def _call_of(worker: WorkerClient, request: InspectionRequest, runtime: Runtime) -> InspectedCall:
    """The call at the largest sizes that can be generated, in the dtypes that are declared first."""
    reference = await _reference(worker, request, runtime)
    seconds = request.seconds
    candidate = await describe(worker, request.candidate, "candidate", runtime, seconds=seconds)
    problem = problem_of(reference or candidate, candidate, request.options)
    declaring = reference.target if reference else None
    declaration = problem.declaration
    example = examples_case(problem.reference)
    if example is not None and not (request.options.inputs or request.options.dims):
        return InspectedCall(declaring, example)
    dims = timing_dims(declaration, at_least_bytes=0)
    case = declaration.case(dims)
    return InspectedCall(declaring, case, (*emptiness(case), *further_dtypes(declaration)))


def emptiness(case: Case) -> Iterator[str]:
    """That a call has tensors without elements."""
    empty = [tensor.name for tensor in tensors_in(case.arguments) if not tensor.elements]
    if empty:
        holds = "holds" if len(empty) == 1 else "hold"
        yield f"The call is empty at {case.name}: {', '.join(empty)} {holds} no elements."


def further_dtypes(declaration: Declaration) -> Iterator[str]:
    """The declared dtypes that the call does not have."""
    names: defaultdict[tuple[DType, ...], list[str]] = defaultdict(list)
    for name, tensor in declaration.tensors().items():
        names[tensor.dtypes[1:]].append(name)
    listed = [f"{', '.join(dtypes)} for {', '.join(names[dtypes])}" for dtypes in names if dtypes]
    if listed:
        yield f"Also declared: {'; '.join(listed)}: name one with --input."


async def _reference(
    worker: WorkerClient, request: InspectionRequest, runtime: Runtime
) -> Description | None:
    """The reference, which a candidate need not have to be inspected."""
    if request.reference is None and request.candidate.name is not None:
        return None
    target = reference_of(request.candidate, request.reference)
    try:
        return await describe(worker, target, "reference", runtime, seconds=request.seconds)
    except TargetNotFound:
        if request.reference is not None:
            raise
        return None


def refuse_nothing(compiled: Compiled, request: InspectionRequest, case: Case) -> None:
    """Raises TargetBroken where no kernel was reached, and why; that the call is empty comes first."""
    if compiled.kernels:
        return
    first = "".join(f"{note} " for note in emptiness(case))
    target, failure = request.candidate, compiled.failure
    if failure is not None:
        raise TargetBroken(
            f"{first}{target} was called without a GPU, on CPU tensors in place of GPU tensors, and failed "
            f"before any launch: {describe_failure(failure)}",
            "Fix the call; where it needs values that only a kernel computes, name a function "
            "(path.py:name) that does not.",
        )
    if compiled.notes:
        raise TargetBroken(
            f"{first}No kernel of {target} was compiled. {' '.join(compiled.notes)}", "Allow more time."
        )
    raise TargetBroken(
        f"{first}{target} launches no Triton kernel at {case.name}.",
        "Name the function that launches it, and sizes at which it does.",
    )


def describe_failure(failure: Failure) -> str:
    """`ValueError: what (line 7).`"""
    line = f" (line {failure.line})" if failure.line else ""
    return f"{failure.type}: {failure.message}{line}."


def read_all(
    kernels: Sequence[CompiledKernel], gpu: Architecture, sheet: DataSheet | None = None
) -> tuple[InspectedKernel, ...]:
    """The kernels with what their texts say, and with a data sheet how long each takes at least."""
    return tuple(
        read(kernel, label, gpu, sheet) for kernel, label in zip(kernels, labels(kernels), strict=True)
    )


def labels(kernels: Sequence[CompiledKernel]) -> Iterator[str]:
    """Names; numbered from 1 where several kernels have one."""
    counts = Counter(kernel.name for kernel in kernels)
    seen: Counter[str] = Counter()
    for kernel in kernels:
        seen[kernel.name] += 1
        yield kernel.name if counts[kernel.name] == 1 else f"{kernel.name}#{seen[kernel.name]}"


def read(kernel: CompiledKernel, label: str, gpu: Architecture, sheet: DataSheet | None) -> InspectedKernel:
    if kernel.resources is None:
        return InspectedKernel(
            label=label, compiled=kernel, instructions=None, occupancy=None, remarks=(refusal(kernel),)
        )
    texts = {kind: path.read_text(encoding="utf-8") for kind, path in kernel.texts.items()}
    file = Path(kernel.file).name
    assembly = read_ptx(texts.get("ptx", ""), file) if gpu.backend == "cuda" else None
    instructions = assembly or read_amdgcn(texts.get("amdgcn", ""), file)
    occupancy = occupancy_of(kernel.resources, kernel.num_warps, gpu)
    sections = read_sass(texts["sass"]) if "sass" in texts else ()
    executed = executed_sections(sections, ran(texts["ptx"], kernel)) if sections else ()
    launch = Launch(kernel, occupancy, executed, gpu, sheet)
    ttgir, ttir = (SourceRows(texts.get(kind, ""), file) for kind in ("ttgir", "ttir"))
    reading = KernelReading(
        kernel=kernel,
        resources=kernel.resources,
        gpu=gpu,
        instructions=instructions,
        occupancy=occupancy,
        blocks=block_accesses(ttgir),
        loops=loops(ttgir),
        dots=dots(ttir),
        sums=short_sums(ttir),
        float_atomics=float_atomics(ttir),
        estimate=estimate(launch) if kernel.grid is not None and kernel.tensor_bytes is not None else None,
    )
    return InspectedKernel(
        label=label,
        compiled=kernel,
        instructions=instructions,
        occupancy=occupancy,
        sections=tuple(each.counts for each in executed),
        estimate=reading.estimate,
        remarks=remarks_on(reading),
    )


def choose(kernels: Sequence[InspectedKernel], name: str | None) -> tuple[InspectedKernel, ...]:
    """Those of that name or label. Raises BadInput, which lists the labels, where there is none."""
    matches = tuple(k for k in kernels if name in (None, k.label, k.compiled.name))
    if not matches:
        known = ", ".join(kernel.label for kernel in kernels)
        raise BadInput(f"The call launches no kernel {name}.", f"It launches {known}.")
    return matches


def with_text(kernels: Sequence[InspectedKernel], kind: TextKind) -> InspectedKernel:
    """The first kernel that has this text, else the first of all."""
    return next((kernel for kernel in kernels if kind in kernel.compiled.texts), kernels[0])


def notes_of(compiled: Compiled, named: Architecture | None, gpu: Architecture) -> Iterator[str]:
    if named is None:
        yield f"No arch was named: these are figures for {gpu.name}."
    if compiled.failure is not None:
        yield (
            "The call ended early, so kernels that it launches later are missing: "
            f"{describe_failure(compiled.failure)} Kernels are not run here, so their results are not there."
        )


def summary_of(kernels: Sequence[InspectedKernel], gpu: Architecture) -> str:
    refusals = sum(kernel.compiled.failure is not None for kernel in kernels)
    remarks = Counter(remark.kind for kernel in kernels for remark in kernel.remarks)
    del remarks["refused"]
    compiled = len(kernels) - refusals
    parts = [f"{plural(compiled, 'kernel')} compiled for {gpu.name}" if compiled else ""]
    parts += [f"the compiler refuses {plural(refusals, 'kernel')}" if refusals else ""]
    listed = ", ".join(f"{kind.replace('_', ' ')} ({count})" for kind, count in remarks.most_common())
    text = "; ".join(part for part in parts if part)
    more = f" Worth a look: {listed}." if listed else "" if refusals else " Nothing stands out."
    return f"{text[:1].upper()}{text[1:]}.{more}"


def next_step_of(kernels: Sequence[InspectedKernel], request: InspectionRequest) -> str:
    for kernel in kernels:
        if kernel.compiled.failure is not None:
            failure = kernel.compiled.failure
            line, file = failure.line or kernel.compiled.line, failure.file or kernel.compiled.file
            return f"Fix {kernel.label} at line {line} of {file}."
    with_remarks = next((kernel for kernel in kernels if kernel.remarks), None)
    if with_remarks is not None:
        return f"Start with {with_remarks.label}: {with_remarks.remarks[0].message}"
    if request.profile is None:
        return "On a GPU, benchmark shows how fast it is, and inspect with profile ncu what it waits for."
    return "Compare the profile's longest kernel with the remarks on it."
