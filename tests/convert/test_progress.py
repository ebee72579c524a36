"""Stages that are validated at once are one piece of work to whoever watches."""

from typing import Any

import pytest

from pytorch_to_triton.convert.stages import StageListener
from pytorch_to_triton.draft.file.launches import Stage

pytestmark = pytest.mark.anyio


class Watching:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float | None, str]] = []

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.seen.append((done, total, message))

    async def item(self, result: dict[str, Any]) -> None:
        raise AssertionError(result)


async def test_cases_of_stages_that_run_at_once_add_up_to_one_total() -> None:
    watching = Watching()
    cases: dict[Stage, tuple[float, float]] = {1: (0, 0), 2: (0, 0), 3: (0, 0)}
    first, second, third = (StageListener(watching, stage, cases) for stage in cases)
    for done in range(4):
        await first.progress(done, 4, f"case {done}")
        await third.progress(done, 4, f"case {done}")
        await second.progress(done, 4, f"case {done}")
    done = [each[0] for each in watching.seen]
    assert done == sorted(done)
    assert done[-1] == 9
    assert {total for _, total, _ in watching.seen} == {12}
    assert watching.seen[1][2] == "stage 3: case 0"


async def test_stages_that_start_over_say_why() -> None:
    watching = Watching()
    await StageListener(watching, 2, {}, ["tanh"]).progress(0, 4, "N=5")
    assert [text for _, _, text in watching.seen] == ["stage 2, drafted again as tanh was wrong: N=5"]
