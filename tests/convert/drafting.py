"""Drafted files of a target, without validating them."""

from collections.abc import Sequence
from pathlib import Path

from pytorch_to_triton.convert.convert import source_of
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Drafted, Source, draft
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.inputs.declaration import NO_OPTIONS
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe

STAGES: tuple[Stage, ...] = (1, 2, 3)


async def drafted(
    worker: WorkerClient, runtime: Runtime, target: Target, folder: Path, stages: Sequence[Stage] = STAGES
) -> list[str]:
    """The paths of one file a stage."""
    return written_drafts(await sourced(worker, runtime, target), target, folder, stages)


async def sourced(worker: WorkerClient, runtime: Runtime, target: Target) -> tuple[Traced, Source]:
    """What a target's drafts are made from."""
    description = await describe(worker, target, "reference", runtime)
    declaration = declaration_of(description, description, NO_OPTIONS)
    traced = await trace(worker, target, declaration, runtime)
    return traced, source_of(target, description, declaration, traced)


def written_drafts(
    origin: tuple[Traced, Source], target: Target, folder: Path, stages: Sequence[Stage] = STAGES
) -> list[str]:
    return [written(d, target, folder, s) for s, d in drafts_of(origin, stages).items()]


def drafts_of(origin: tuple[Traced, Source], stages: Sequence[Stage] = STAGES) -> dict[Stage, Drafted]:
    traced, source = origin
    return {stage: draft(traced.graph, source, stage) for stage in stages}


def written(drafted: Drafted, target: Target, folder: Path, stage: Stage) -> str:
    """The path of the draft's file."""
    file = folder / f"{target.path.stem}_stage{stage}.py"
    file.write_text(drafted.text, encoding="utf-8")
    return str(file)
