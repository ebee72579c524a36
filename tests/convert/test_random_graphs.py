"""Whatever composition of operators comes in, every stage of its draft computes what PyTorch computes."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.target import Target

from .random_graphs import random_target

pytestmark = pytest.mark.anyio

SEEDS = range(2)
# Each takes about a minute; `SEEDS = range(100)` is for a quiet evening.


def test_a_seed_always_gives_the_same_function() -> None:
    assert random_target(5) == random_target(5)
    assert len({random_target(seed) for seed in range(6)}) == 6


@pytest.mark.corpora
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_function_is_drafted_and_all_stages_are_right(
    seed: int, tmp_path: Path, converted: Callable[[Target], Awaitable[Conversion]]
) -> None:
    path = tmp_path / "target.py"
    path.write_text(random_target(seed), encoding="utf-8")
    conversion = await converted(Target(path=path, name="f"))
    assert conversion.verdict == "converted", f"{path.read_text()}\n{conversion.summary}"
    assert [stage.verdict.verdict for stage in conversion.stages] == ["passed"] * 3
    groups = {case.group for stage in conversion.stages for case in stage.verdict.cases}
    assert groups >= {"declared", "odd", "one", "empty", "layout", "special"}
