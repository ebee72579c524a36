"""Calls of a target in every dtype that it declares, for drafted files to be run in beside eager PyTorch."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from pydantic import JsonValue

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Declaration
from pytorch_to_triton.inputs.sizes import middle_point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe

from .drafting import STAGES, drafts_of, written

BESIDE_EAGER = Path(__file__).parent / "jobs" / "beside_eager.py"
Draft = dict[str, JsonValue]


async def differences(worker: WorkerClient, runtime: Runtime, drafts: Sequence[Draft]) -> dict[str, object]:
    """What differs from eager PyTorch, by the draft's name."""
    job = Job(kind=str(BESIDE_EAGER), arguments={"drafts": list(drafts)})
    outcome = await worker.ask(job, runtime, seconds=300.0)
    assert outcome.answer is not None, outcome
    return dict(outcome.answer)


async def outcome_of(
    worker: WorkerClient,
    runtime: Runtime,
    targets: Mapping[str, Target],
    folder: Path,
    stages: Sequence[Stage] = STAGES,
) -> tuple[dict[str, object], dict[str, set[str]]]:
    """By name, what the drafts of these targets differ in at their sizes, and which calls they leave."""
    drafts, left = [], {}
    for name, target in targets.items():
        resolved = await resolve(worker, ConversionRequest(target=target), runtime)
        drafted = drafts_of(resolved.convertible(), stages)
        files = [written(d, target, folder, stage) for stage, d in drafted.items()]
        declaration = resolved.declaration
        drafts.append(draft_of(name, target, files, calls(declaration, sizes(declaration))))
        left[name] = {call for d in drafted.values() for call in d.calls}
    return await differences(worker, runtime, drafts), left


def sizes(declaration: Declaration) -> list[Mapping[str, int]]:
    """Smallest, middle and largest: some with a size of one, some with odd ones."""
    smallest = {name: min(values) for name, values in declaration.dims.items()}
    largest = {name: max(values) for name, values in declaration.dims.items()}
    chosen = [middle_point(declaration.dims), smallest, largest]
    return [dict(point) for point in {tuple(p.items()): p for p in chosen}.values()]


async def declared(worker: WorkerClient, runtime: Runtime, target: Target) -> Declaration:
    description = await describe(worker, target, "reference", runtime)
    return declaration_of(description, description, NO_OPTIONS)


def draft_of(name: str, target: Target, files: Sequence[str], calls: Sequence[JsonValue]) -> Draft:
    """As the job takes it; without files, only the target itself is called."""
    return {"name": name, "target": dict(target.as_json()), "files": list(files), "calls": list(calls)}


def calls(
    declaration: Declaration, sizes: Sequence[Mapping[str, int]], scale: float = 1.0
) -> list[JsonValue]:
    """At these sizes: all tensors in each dtype as far as they declare it, then each tensor alone in each of
    its dtypes, which eager PyTorch may refuse. `scale` is that of floats that declare no range."""
    declared = {name: spec.dtypes for name, spec in declaration.tensors().items()}
    first = {name: dtypes[0] for name, dtypes in declared.items()}
    every = dict.fromkeys(chain.from_iterable(declared.values()))
    alike: list[dict[str, DType]] = [{n: d if d in declared[n] else first[n] for n in first} for d in every]
    apart = [{**first, n: d} for n, dtypes in declared.items() for d in dtypes]
    return [
        {
            "name": f"{dict(dims)} {dtypes}",
            "arguments": [a.model_dump(mode="json") for a in declaration.arguments(dims, dtypes)],
            "scale": scale,
            "may_refuse": dtypes not in alike,
        }
        for dims in sizes
        for dtypes in [*alike, *(d for d in apart if d not in alike)]
    ]
