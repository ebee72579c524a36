"""Every wrong and every cheating kernel of the corpus is refused; every honest one passes."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.validate import Request, validate

pytestmark = pytest.mark.anyio

KERNELS = Path(__file__).parents[1] / "kernels"
LIMIT_ELEMENTS = 2**18
FEW_ELEMENTS = 2**13
"""A cheat shows at any size."""
Judge = Callable[[Path, int], Awaitable[Verdict]]


def files(folder: str) -> list[Path]:
    return sorted((KERNELS / folder).glob("*.py"))


@pytest.fixture
def judge(door: Door, interpreter: Mode) -> Judge:
    async def judge(path: Path, limit: int) -> Verdict:
        request = Request(candidate=Target(path=path), seed=7, limit_elements=limit)
        return await validate(door, request, interpreter)

    return judge


@pytest.mark.parametrize("path", files("honest"), ids=lambda path: path.stem)
async def test_an_honest_kernel_passes(path: Path, judge: Judge) -> None:
    verdict = await judge(path, LIMIT_ELEMENTS)
    assert verdict.verdict == "passed", verdict.summary


@pytest.mark.parametrize("path", files("wrong"), ids=lambda path: path.stem)
async def test_a_wrong_kernel_is_refused(path: Path, judge: Judge) -> None:
    verdict = await judge(path, LIMIT_ELEMENTS)
    assert verdict.verdict == "failed", verdict.summary


@pytest.mark.parametrize("path", files("cheating"), ids=lambda path: path.stem)
async def test_a_cheating_kernel_is_refused(path: Path, judge: Judge) -> None:
    verdict = await judge(path, FEW_ELEMENTS)
    assert verdict.verdict == "failed", verdict.summary
