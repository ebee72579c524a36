"""A session's best file, finished: the function, its tests and its benchmark in a folder of the user's; the
tests are run once, in the Python that has torch and triton.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.tuning.freeze import freeze
from pytorch_to_triton.convert.conversion_report import beside_eager
from pytorch_to_triton.convert.finish.converted import recipe_of, submitted_file
from pytorch_to_triton.convert.finish.files import files, page
from pytorch_to_triton.convert.finish.recipe import Recipe
from pytorch_to_triton.convert.finish.report import Dossier, markdown, report_of
from pytorch_to_triton.convert.resolve import ResolvedTarget, resolve
from pytorch_to_triton.convert.session.start import digest
from pytorch_to_triton.convert.session.store import BENCHMARK, SessionFolder, SessionRecord, best_of
from pytorch_to_triton.convert.session.submit import refuse_changed_target
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.graph.cost import elements
from pytorch_to_triton.hardware.versions import Versions, origin_of, today, versions
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.results import folder_for, owner_of, put_file, refuse_foreign_file
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.schema.finished import FinishedConversion, FinishedFile, TestRun
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.session import Attempt
from pytorch_to_triton.schema.target import Target

TOOL = "convert finish"


@dataclass(frozen=True)
class FinishRequest:
    """Where the result goes, and whether it is written."""

    into: Path | None = None
    """None: `converted/NAME` below the current folder."""
    force: bool = False
    """Whether files that no conversion of the target wrote may be replaced."""
    dry_run: bool = False
    """Whether it is only said what would be written."""
    against: tuple[Target, ...] = ()
    """Other implementations that are timed beside it, on a device."""


async def finish(
    worker: WorkerClient,
    folder: SessionFolder,
    request: FinishRequest,
    runtime: Runtime,
    listener: ProgressListener,
) -> FinishedConversion:
    """Write what the session's best file becomes, and run its tests; on a device, time it at several sizes.

    Raises BadInput where no gate has opened, the target has changed, or a file is in the way.
    """
    record = folder.record()
    refuse_changed_target(record)
    best = best_of(folder.attempts())
    if best is None:
        raise BadInput(
            f"No gate of {folder.path} has opened yet.",
            f"Pass stage 1 first: convert submit {shlex.quote(str(folder.path))}",
        )
    target = await resolve(worker, record.setting, runtime)
    text = folder.kernel(best).read_text(encoding="utf-8")
    drafted = digest(text) in record.drafted.values()
    recipe = recipe_of(target, submitted_file(target, text), drafted=drafted)
    into = folder_for(request.into or Path("converted") / recipe.name)
    finished = files(recipe, speed_of(best))
    planned = {**finished.texts, **dict.fromkeys(report_names(recipe), "")}
    refuse_foreign(planned, into, request)
    if request.dry_run:
        written = tuple(finished_file(into / name, text, request) for name, text in planned.items())
        return finished_conversion(folder, recipe, written, None, notes_on(best))
    found_versions = await versions(worker, runtime)
    timed = None
    notes = notes_on(best)
    if not runtime.interpreter:
        # Reports and pictures call a kernel by its file.
        kernel = folder.path / BENCHMARK / f"{recipe.function}.py"
        places.write_atomically(kernel, text)
        asked = benchmark_request(folder, target, kernel, request)
        timed = await benchmark(worker, asked, runtime, listener)
        text, more = with_measured(text, timed, found_versions)
        notes = (*notes, *more)
        recipe = recipe_of(target, submitted_file(target, text), drafted=drafted)
        finished = files(recipe, speed_of(best))
    dossier = Dossier(
        name=recipe.function,
        understood=record.understood,
        stages=tuple(folder.opened_stages()),
        attempts=folder.attempts(),
        validation=folder.validation(best),
        audit=folder.audit(best),
        benchmark=timed,
        saved=saved_text(target),
        machine=machine_text(found_versions, runtime),
        commands=commands(folder, finished.kernels),
    )
    report = report_of(dossier)
    reports = dict(zip(report_names(recipe), (markdown(report), page(report)), strict=True))
    texts = {**finished.texts, **reports}
    written = put(record, texts, into, request)
    await listener.progress(0, 1, f"running test_{finished.kernels}")
    tests = await run_tests(worker, into / f"test_{finished.kernels}", runtime, record.setting.seconds)
    finished_files = finished_conversion(folder, recipe, written, tests, notes)
    if timed is None:
        return finished_files
    return finished_files.model_copy(update={"summary": f"{finished_files.summary} {timed.summary}"})


def with_measured(text: str, timed: Benchmark, versions: Versions) -> tuple[str, tuple[str, ...]]:
    """The file with what its autotuned kernels chose at each size as a table, and what there is to say of it.

    Each of these configurations was validated. Sizes that were not timed take the nearest one's.
    """
    if not timed.tuned:
        return text, ()
    try:
        return freeze(text, timed.tuned, str(origin_of(versions))), ()
    except BadInput as refusal:
        return text, (f"The kernels are still autotuned. {refusal.message}",)


def refuse_foreign(names: Iterable[str], into: Path, request: FinishRequest) -> None:
    """Raises BadInput where a file of somebody else is in the way of one of these."""
    for name in names:
        refuse_foreign_file(into / name, TOOL, force=request.force)


def put(
    record: SessionRecord, texts: Mapping[str, str], into: Path, request: FinishRequest
) -> tuple[FinishedFile, ...]:
    """Write every file."""
    make(into)
    written = tuple(finished_file(into / name, text, request) for name, text in texts.items())
    for name, text in texts.items():
        put_file(into / name, text, owner_of(TOOL, record.setting.target, into), force=request.force)
    return written


def finished_file(path: Path, text: str, request: FinishRequest) -> FinishedFile:
    """What is, or would be, written to a path."""
    there = "replaced" if path.exists() else "new"
    return FinishedFile(
        path=path, lines=text.count("\n"), there=f"would be {there}" if request.dry_run else there
    )


def report_names(recipe: Recipe) -> tuple[str, str]:
    """The report as Markdown and as a page."""
    return f"{recipe.module_name}_report.md", f"{recipe.module_name}_report.html"


def benchmark_request(
    folder: SessionFolder, target: ResolvedTarget, kernel: Path, request: FinishRequest
) -> BenchmarkRequest:
    """The sizes that matter, else a sweep."""
    setting, points = folder.record().setting, target.timed_points
    options, named = setting.options, frozenset().union(*points)
    return BenchmarkRequest(
        candidate=Target(path=kernel),
        reference=setting.target,
        against=request.against,
        options=replace(options, dims={n: sizes for n, sizes in options.dims.items() if n not in named}),
        points=points,
        baselines=("eager", "compile"),
        passes="both" if setting.backward else "forward",
        seconds=setting.seconds,
        seed=setting.seed,
        into=folder.path / BENCHMARK,
        force=True,
    )


def saved_text(target: ResolvedTarget) -> str:
    """What the backward pass keeps of a call, with its bytes at the sizes that are timed."""
    if target.whole is None or target.whole.traced.backward is None:
        return ""
    backward, graph = target.whole.traced.backward, target.whole.traced.graph
    dims = target.timing_cases()[-1].dims
    tensors = [tensor for tensor in backward.graph.inputs if tensor.name in backward.saved]
    count = sum(elements(tensor.shape, dims) * ITEM_BYTES[tensor.dtype] for tensor in tensors)
    source_names = {node.name: node.source_name or node.name for node in graph.nodes}
    names = ", ".join(source_names.get(tensor.name, tensor.name) for tensor in tensors) or "nothing"
    return f"Saved for the backward pass: {names}; {count:,} bytes at {point_name(dims)}."


def machine_text(versions: Versions, runtime: Runtime) -> str:
    """Where all of this was seen."""
    device = "the CPU, in Triton's interpreter" if runtime.interpreter else versions.devices[0].name
    return f"Seen on {device}, with torch {versions.torch} and Triton {versions.triton}, {today()}."


def commands(folder: SessionFolder, kernels: str) -> tuple[str, ...]:
    """How tests, timings and the whole validation are run again, in the folder of the files."""
    return (
        f"pytest test_{kernels}",
        f"python bench_{kernels}",
        f"pytorch-to-triton validate {kernels}{' --backward' if folder.record().setting.backward else ''}",
    )


def make(folder: Path) -> None:
    """Raises BadInput where the folder cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(
            f"{folder} cannot be made: {problem.strerror}.", "Name another with --into."
        ) from problem


def speed_of(best: Attempt) -> str:
    """What was measured of the file."""
    return f"Measured {best.when[:10]}: {text}." if (text := beside_eager(best.times)) else ""


def notes_on(best: Attempt) -> tuple[str, ...]:
    notes = [] if best.stage == 3 else [f"The file is of stage {best.stage}: later gates have not opened."]
    if best.accepted:
        notes.append(f"Accepted although not faster: {best.accepted}")
    return tuple(notes)


def finished_conversion(
    folder: SessionFolder,
    recipe: Recipe,
    written: tuple[FinishedFile, ...],
    tests: TestRun | None,
    notes: tuple[str, ...],
) -> FinishedConversion:
    """What the caller is told."""
    name, main, test = recipe.name, written[0].path, written[1].path
    if tests is None:
        verdict, summary = "planned", f"{name}: {len(written)} files would be written to {main.parent}."
        next_step = "Leave out --dry-run to write them."
    elif tests.passed:
        verdict, summary = "finished", f"{name}: {main} is ready; its tests: {tests.summary}."
        use = f"Import {name} from {main.stem} in place of PyTorch's"
        if recipe.module:
            use = f"Call use_kernels(model) of {main.stem}, for every {recipe.module.name} in the model"
        next_step = f"{use}; keep {test.name} with your tests."
    else:
        verdict, summary = "failed", f"{name}: {main} is written, but {tests.summary}."
        next_step = f"Run pytest {shlex.quote(str(test))} and look at what fails."
    return FinishedConversion(
        summary=summary,
        next_step=next_step,
        verdict=verdict,
        session=folder.path,
        files=written,
        tests=tests,
        notes=notes,
    )


MOST_LINES = 12
"""Of what failed; pytest itself says the rest."""


async def run_tests(worker: WorkerClient, file: Path, runtime: Runtime, seconds: float) -> TestRun:
    """Run pytest on a file; that it is missing there, or takes too long, is no failure of a test."""
    job = Job(kind="run_tests", arguments={"file": str(file)})
    outcome = await worker.ask(job, runtime, seconds=seconds)
    if outcome.answer is None:
        return TestRun(passed=False, summary=f"its tests did not end: {outcome.detail}")
    status, output = outcome.answer["status"], str(outcome.answer["output"])
    if status is None:
        return TestRun(passed=True, summary="not run, as pytest is not installed there")
    last = output.strip().splitlines()[-1].strip("= ") if output.strip() else f"exit status {status}"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR ", "E  "))]
    return TestRun(
        passed=status == 0, summary=last, output="" if status == 0 else "\n".join(failed[:MOST_LINES])
    )
