"""A session's best file, finished: the function, its tests and its benchmark in a folder of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.convert.convert import declared
from pytorch_to_triton.convert.finish.converted import Converted
from pytorch_to_triton.convert.finish.files import Finished, files
from pytorch_to_triton.convert.finish.test_run import run_tests
from pytorch_to_triton.convert.session.start import (
    SessionTarget,
    declared_by_hand,
    digest,
    prepared,
    reference_in,
)
from pytorch_to_triton.convert.session.state import best_of
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord
from pytorch_to_triton.convert.session.submit import refuse_changed_target
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.results import folder_for, owner_of, put_file, refuse_foreign_file
from pytorch_to_triton.schema.finished import FinishedConversion, FinishedFile, TestRun
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import Attempt

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


async def finish(
    worker: WorkerClient, folder: SessionFolder, request: FinishRequest, runtime: Runtime
) -> FinishedConversion:
    """Write what the session's best file becomes, and run its tests.

    Raises BadInput where no gate has opened, the target has changed, or a file is in the way.
    """
    record = folder.record()
    refuse_changed_target(record)
    best = best_of(folder.attempts())
    if best is None:
        raise BadInput(
            f"No gate of {folder.path} has opened yet.", f"Pass stage 1 first: convert submit {folder.path}"
        )
    found = await prepared(worker, record.setting, runtime)
    text = folder.kernel(best).read_text(encoding="utf-8")
    drafted = digest(text) in record.drafted.values()
    recipe = converted(found).recipe(text, drafted=drafted)
    finished = files(recipe, speed_of(best))
    into = folder_for(request.into or Path("converted") / recipe.name)
    written = await put(record, finished, into, request)
    if request.dry_run:
        return concluded(folder, recipe.name, written, None, notes_on(best))
    tests = await run_tests(worker, into / f"test_{finished.kernels}", runtime, record.setting.seconds)
    return concluded(folder, recipe.name, written, tests, notes_on(best))


def converted(found: SessionTarget) -> Converted:
    """What a session knows of its target. Raises BadInput where its code cannot be copied."""
    reference = reference_in(found)
    if reference is None:
        raise BadInput(
            f"The code of {found.description.name} cannot be copied into the finished file, which needs it.",
            "Define it as a plain function at the top level of its file.",
        )
    return Converted(
        target=found.setting.target,
        description=found.description,
        declaration=found.declaration,
        graph=found.traced.graph if found.traced else None,
        reference=reference,
        given=declared(found.declaration, found.traced) if found.traced else declared_by_hand(found),
        backward=found.setting.backward,
    )


async def put(
    record: SessionRecord, finished: Finished, into: Path, request: FinishRequest
) -> tuple[FinishedFile, ...]:
    """Write every file, or none where one is in the way."""
    there = {name: (into / name).exists() for name in finished.texts}
    for name in finished.texts:
        refuse_foreign_file(into / name, TOOL, force=request.force)
    if not request.dry_run:
        make(into)
        for name, text in finished.texts.items():
            put_file(into / name, text, owner_of(TOOL, record.setting.target, into), force=request.force)
    return tuple(
        FinishedFile(path=into / name, lines=text.count("\n"), there=stand(request, was_there=there[name]))
        for name, text in finished.texts.items()
    )


def stand(request: FinishRequest, *, was_there: bool) -> str:
    if request.dry_run:
        return "would be replaced" if was_there else "would be new"
    return "replaced" if was_there else "new"


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
    if best.median_ms is None or best.eager_ms is None:
        return ""
    times = f"{best.median_ms:.4f} ms against {best.eager_ms:.4f} ms"
    return (
        f"Measured {best.when[:10]}: {best.eager_ms / best.median_ms:.2f} times as fast as eager ({times})."
    )


def notes_on(best: Attempt) -> tuple[str, ...]:
    notes = [] if best.stage == 3 else [f"The file is of stage {best.stage}: later gates have not opened."]
    if best.accepted:
        notes.append(f"Accepted although not faster: {best.accepted}")
    return tuple(notes)


def concluded(
    folder: SessionFolder,
    name: str,
    written: tuple[FinishedFile, ...],
    tests: TestRun | None,
    notes: tuple[str, ...],
) -> FinishedConversion:
    """What the caller is told."""
    main, test = written[0].path, written[1].path
    if tests is None:
        verdict, summary = "planned", f"{name}: {len(written)} files would be written to {main.parent}."
        next_step = "Leave out --dry-run to write them."
    elif tests.passed:
        verdict, summary = "finished", f"{name}: {main} is ready; its tests: {tests.summary}."
        next_step = f"Import {name} from {main.stem} in place of PyTorch's; keep {test.name} with your tests."
    else:
        verdict, summary = "failed", f"{name}: {main} is written, but {tests.summary}."
        next_step = f"Run pytest {test} and look at what fails."
    return FinishedConversion(
        summary=summary,
        next_step=next_step,
        verdict=verdict,
        session=folder.path,
        files=written,
        tests=tests,
        notes=notes,
    )
