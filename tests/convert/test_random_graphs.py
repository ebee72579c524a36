"""Whatever composition of operators comes in, every stage of its draft computes what PyTorch computes."""

from pathlib import Path

import pytest

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.schema.target import Target

from ..random_programs import random_program
from .conftest import Comparing, Resolving
from .drafting import written_drafts
from .eager_calls import calls, draft_of

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
    first: int, resolved: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    drafts = []
    for seed in range(first, first + BATCH):
        program = random_program(seed)
        path = tmp_path / f"program_{seed}.py"
        path.write_text(program.source(), encoding="utf-8")
        target = await resolved(Target(path=path, name="f"))
        try:
            files = written_drafts(target.convertible(), target.target, tmp_path)
        except NotConvertible:
            # It has nothing but views, or torch.export takes the traced size for the only one.
            continue
        drafts.append(draft_of(path.stem, target.target, files, calls(target.declaration, [program.dims])))
    assert await compared(*drafts) == {draft["name"]: [] for draft in drafts}
    assert len(drafts) >= BATCH - 2
