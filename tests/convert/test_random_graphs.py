"""Whatever composition of operators comes in, every stage of its draft computes what PyTorch computes."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..random_programs import random_program
from .drafting import written_drafts
from .eager_calls import calls, differences, draft_of

pytestmark = pytest.mark.anyio

BATCH = 3
PROGRAMS = 3
PROGRAMS_OF_THE_CORPORA = 60


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(n, marks=() if n < PROGRAMS else pytest.mark.corpora)
        for n in range(0, PROGRAMS_OF_THE_CORPORA, BATCH)
    ],
)
async def test_a_random_program_is_drafted_and_all_stages_are_right(
    first: int, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    drafts = []
    for seed in range(first, first + BATCH):
        program = random_program(seed)
        path = tmp_path / f"program_{seed}.py"
        path.write_text(program.source(), encoding="utf-8")
        target = Target(path=path, name="f")
        resolved = await resolve(worker, ConversionRequest(target=target), interpreter)
        try:
            files = written_drafts(resolved.convertible(), target, tmp_path)
        except NotConvertible:
            # It has nothing but views, or torch.export takes the traced size for the only one.
            continue
        drafts.append(draft_of(path.stem, target, files, calls(resolved.declaration, [program.dims])))
    found = await differences(worker, interpreter, drafts)
    assert found == {draft["name"]: [] for draft in drafts}
    assert len(drafts) >= BATCH - 2
