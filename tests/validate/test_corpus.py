"""Every wrong and every cheating kernel of the corpus is refused; every honest one passes.

Each kernel is judged by its telling cases; with `-m corpora` a sixth of the honest and a ninth of the wrong
ones by all cases of their plans, with ALL_KERNELS=1 all of them.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.conclusion import LIMITS_SHOWN
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .telling_cases import KINDS, TELLING
from .verdicts import most_wrong

pytestmark = pytest.mark.anyio

ALL_KERNELS = bool(os.environ.get("ALL_KERNELS"))
KERNELS = Path(__file__).parents[1] / "kernels"
ELEMENTS = {"honest": 2**16, "tutorials": 2**16, "wrong": 2**18, "cheating": 2**13}
"""Sums in half precision go wrong only in long rows; a cheat shows at any size."""
CONFIGURED = ("configurations_of_other_reach", "loop_counts_first_block", "tiles_apart_by_the_other_block")
"""Wrong in a configuration that no plan names yet: test_configurations.py judges them."""
Corpus = Callable[[str, tuple[str, ...]], Awaitable[Verdict]]


def kernels(*folders: str) -> list[str]:
    files = (path for folder in folders for path in sorted((KERNELS / folder).glob("*.py")))
    return [f"{path.parent.name}/{path.stem}" for path in files]


def planned(*folders: str) -> list[str]:
    return [name for name in kernels(*folders) if not name.endswith(CONFIGURED)]


@pytest.fixture
def corpus(worker: WorkerClient, interpreter: Runtime) -> Corpus:
    """Validates a kernel of the corpus, on the named cases or on all."""

    async def judge(name: str, cases: tuple[str, ...]) -> Verdict:
        limit = ELEMENTS[name.partition("/")[0]]
        target = Target(path=KERNELS / f"{name}.py")
        request = ValidationRequest(candidate=target, seed=7, limit_elements=limit, cases=cases)
        return await validate(worker, request, interpreter)

    return judge


def test_every_kernel_has_its_telling_cases() -> None:
    assert list(TELLING) == kernels("cheating", "honest", "tutorials", "wrong")
    assert all(TELLING.values())


@pytest.mark.parametrize("name", kernels("honest") + kernels("tutorials")[::3])
async def test_a_right_kernel_passes(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, TELLING[name])
    assert verdict.verdict == "passed", verdict.summary
    assert_limits_are_named(verdict)


@pytest.mark.parametrize("name", planned("wrong", "cheating"))
async def test_a_wrong_kernel_is_refused_with_its_kind_and_place(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, TELLING[name])
    assert verdict.verdict == "failed", verdict.summary
    if name in KINDS:
        kind, where = KINDS[name]
        _, mismatch = most_wrong(verdict)
        assert mismatch.kind == kind, verdict.summary
        assert where is None or mismatch.where == where, verdict.summary


@pytest.mark.corpora
@pytest.mark.parametrize("name", kernels("honest", "tutorials")[:: 1 if ALL_KERNELS else 6])
async def test_a_right_kernel_passes_on_all_cases(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, ())
    assert verdict.verdict == "passed", verdict.summary
    assert_limits_are_named(verdict)


@pytest.mark.corpora
@pytest.mark.parametrize("name", planned("wrong", "cheating")[:: 1 if ALL_KERNELS else 9])
async def test_a_wrong_kernel_is_refused_on_all_cases(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, ())
    assert verdict.verdict == "failed", verdict.summary


def assert_limits_are_named(verdict: Verdict) -> None:
    limited = [case for case in verdict.cases if case.status == "limited"]
    assert bool(limited) == bool(verdict.limits)
    assert all(limit.what in verdict.summary for limit in verdict.limits[:LIMITS_SHOWN])
