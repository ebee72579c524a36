"""Drafted files of a target, without validating them."""

import re
from collections.abc import Sequence
from pathlib import Path

from pytorch_to_triton.convert.finish.converted import recipe_of
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import DraftOrigin, ResolvedTarget, resolve
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Drafted
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

STAGES: tuple[Stage, ...] = (1, 2, 3)


async def drafted(
    worker: WorkerClient, runtime: Runtime, target: Target, folder: Path, stages: Sequence[Stage] = STAGES
) -> list[str]:
    """The paths of one file a stage."""
    return written_drafts(await sourced(worker, runtime, target), target, folder, stages)


async def sourced(worker: WorkerClient, runtime: Runtime, target: Target) -> DraftOrigin:
    """What a target's drafts are made from."""
    return (await resolve(worker, ConversionRequest(target=target), runtime)).convertible()


def written_drafts(
    origin: DraftOrigin, target: Target, folder: Path, stages: Sequence[Stage] = STAGES
) -> list[str]:
    return [written(d, target, folder, s) for s, d in drafts_of(origin, stages).items()]


def drafts_of(origin: DraftOrigin, stages: Sequence[Stage] = STAGES) -> dict[Stage, Drafted]:
    return {stage: origin.drafted(stage) for stage in stages}


def written(drafted: Drafted, target: Target, folder: Path, stage: Stage) -> str:
    """The path of the draft's file."""
    file = folder / f"{target.path.stem}_stage{stage}.py"
    file.write_text(drafted.text, encoding="utf-8")
    return str(file)


def in_file(folder: Path, name: str, text: str) -> Target:
    """A function `f` in a file that is called after what it does."""
    path = folder / f"{re.sub(r'[^a-z]', '_', name)}.py"
    path.write_text(text, encoding="utf-8")
    return Target(path=path, name="f")


def finished_text(target: ResolvedTarget, folder: Path) -> str:
    """Writes what the second stage becomes in the user's repository, and returns the file of the kernels."""
    drafted = target.convertible().drafted(2)
    finished = files(recipe_of(target, drafted.file, drafted=True), "")
    for name, text in finished.texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return finished.texts[finished.kernels]
