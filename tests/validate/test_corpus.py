"""Every wrong and every cheating kernel of the corpus is refused; every honest one passes."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate import validate as validation
from pytorch_to_triton.validate.cases import CasePlan
from pytorch_to_triton.validate.conclusion import LIMITS_SHOWN
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

pytestmark = pytest.mark.anyio

KERNELS = Path(__file__).parents[1] / "kernels"
MANY_ELEMENTS = 2**18
"""Sums in half precision go wrong in long rows alone."""
SOME_ELEMENTS = 2**16
FEW_ELEMENTS = 2**13
"""A cheat shows at any size."""
FEW_CASES = 16
SHOW_LATE = {"caches_by_fingerprint", "ones_by_normalisation", "counts_calls"}
"""Cheats that are honest in those cases."""
Judge = Callable[[Path, int], Awaitable[Verdict]]


def files(folder: str) -> list[Path]:
    return sorted((KERNELS / folder).glob("*.py"))


@pytest.fixture
def judge(worker: WorkerClient, interpreter: Runtime) -> Judge:
    async def judge(path: Path, limit: int) -> Verdict:
        request = ValidationRequest(candidate=Target(path=path), seed=7, limit_elements=limit)
        return await validate(worker, request, interpreter)

    return judge


@pytest.mark.parametrize("path", files("honest"), ids=lambda path: path.stem)
async def test_an_honest_kernel_passes(path: Path, judge: Judge) -> None:
    verdict = await judge(path, SOME_ELEMENTS)
    assert verdict.verdict == "passed", verdict.summary


@pytest.mark.parametrize("path", files("tutorials"), ids=lambda path: path.stem)
async def test_a_kernel_after_the_tutorials_passes_with_its_limits_named(path: Path, judge: Judge) -> None:
    verdict = await judge(path, SOME_ELEMENTS)
    assert verdict.verdict == "passed", verdict.summary
    limited = [case for case in verdict.cases if case.status == "limited"]
    assert bool(limited) == bool(verdict.limits)
    assert all(limit.what in verdict.summary for limit in verdict.limits[:LIMITS_SHOWN])


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the search for the smallest failing case, which test_validate.py looks at."""

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(validation, "shrunk", nothing)


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("path", files("wrong"), ids=lambda path: path.stem)
async def test_a_wrong_kernel_is_refused(path: Path, judge: Judge) -> None:
    verdict = await judge(path, MANY_ELEMENTS)
    assert verdict.verdict == "failed", verdict.summary


@pytest.fixture
def few_cases(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the first cases of a plan: declared sizes, a second call, odd sizes. Most cheats show there."""
    planned = validation.planned

    def first(*arguments: Any) -> CasePlan:
        plan = planned(*arguments)
        return CasePlan(cases=plan.cases[:FEW_CASES], skipped=plan.skipped)

    if path.stem not in SHOW_LATE:
        monkeypatch.setattr(validation, "planned", first)


@pytest.mark.usefixtures("unshrunk", "few_cases")
@pytest.mark.parametrize("path", files("cheating"), ids=lambda path: path.stem)
async def test_a_cheating_kernel_is_refused(path: Path, judge: Judge) -> None:
    verdict = await judge(path, FEW_ELEMENTS)
    assert verdict.verdict == "failed", verdict.summary
