"""Every wrong and every cheating kernel of the corpus is refused; every honest one passes.

Each kernel is judged by its telling cases; with `-m corpora` a sixth of the honest and a ninth of the wrong
ones by all cases of their plans, with ALL_KERNELS=1 all of them, with SEEDS=20 each under so many seeds.
"""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.conclusion import LIMITS_SHOWN
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .kernel_files import MUTATIONS, corpus_file, kernels
from .telling_cases import KINDS, TELLING
from .verdicts import most_wrong

pytestmark = pytest.mark.anyio

ALL_KERNELS = bool(os.environ.get("ALL_KERNELS"))
SEED = 7
SEEDS = range(SEED, SEED + int(os.environ.get("SEEDS", "1")))
ROOT = Path(__file__).parents[2]
ELEMENTS = {"honest": 2**16, "tutorials": 2**16, "wrong": 2**20, "cheating": 2**13}
"""Sums in half precision go wrong only in long rows; a cheat shows at any size."""
Corpus = Callable[..., Awaitable[Verdict]]


@pytest.fixture
def corpus(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Corpus:
    """Validates a kernel of the corpus, on the named cases or on all."""

    async def judge(name: str, cases: tuple[str, ...] = (), seed: int = SEED) -> Verdict:
        limit = ELEMENTS[name.partition("/")[0]]
        target = Target(path=corpus_file(tmp_path, name))
        request = ValidationRequest(candidate=target, seed=seed, limit_elements=limit, cases=cases)
        return await validate(worker, request, interpreter)

    return judge


def test_every_kernel_has_its_telling_cases() -> None:
    assert sorted(TELLING) == kernels("cheating", "honest", "tutorials", "wrong")
    assert all(TELLING.values())


def test_the_threat_model_names_every_cheating_kernel_and_what_sees_it() -> None:
    page = (ROOT / "references" / "threat_model.md").read_text()
    rows = [re.findall(r"`([^`]+)`", row) for row in re.findall(r"^\| .*`.*\|$", page, re.MULTILINE)]
    files = {name for row in rows for name in row if "/" in name}
    assert sorted(f"cheating/{name}" for row in rows for name in row if "/" not in name) == kernels(
        "cheating"
    )
    assert [file for file in files if not (ROOT / "tools" / "pytorch_to_triton" / file).exists()] == []


def test_a_mutation_whose_passage_its_base_no_longer_has_is_an_error() -> None:
    mutation = MUTATIONS["wrong/drops_tail"]
    stale = replace(mutation, changes=(*mutation.changes, ("no such passage", "")))
    with pytest.raises(AssertionError, match="'no such passage' is there 0 times"):
        stale.text()


@pytest.mark.parametrize("name", kernels("honest") + kernels("tutorials")[::3])
async def test_a_right_kernel_passes(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, TELLING[name])
    assert verdict.verdict == "passed", verdict.summary
    assert_limits_are_named(verdict)


@pytest.mark.parametrize("name", kernels("wrong", "cheating"))
async def test_a_wrong_kernel_is_refused_with_its_kind_and_place(name: str, corpus: Corpus) -> None:
    verdict = await corpus(name, TELLING[name])
    assert verdict.verdict == "failed", verdict.summary
    if name in KINDS:
        kind, where = KINDS[name]
        _, mismatch = most_wrong(verdict)
        assert mismatch.kind == kind, verdict.summary
        assert where is None or mismatch.where == where, verdict.summary


@pytest.mark.corpora
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", kernels("honest", "tutorials")[:: 1 if ALL_KERNELS else 6])
async def test_a_right_kernel_passes_on_all_cases(name: str, seed: int, corpus: Corpus) -> None:
    verdict = await corpus(name, seed=seed)
    assert verdict.verdict == "passed", verdict.summary
    assert_limits_are_named(verdict)


@pytest.mark.corpora
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", kernels("wrong", "cheating")[:: 1 if ALL_KERNELS else 9])
async def test_a_wrong_kernel_is_refused_on_all_cases(name: str, seed: int, corpus: Corpus) -> None:
    verdict = await corpus(name, seed=seed)
    assert verdict.verdict == "failed", verdict.summary


def assert_limits_are_named(verdict: Verdict) -> None:
    limited = [case for case in verdict.cases if case.status == "limited"]
    assert bool(limited) == bool(verdict.limits)
    assert all(limit.what in verdict.summary for limit in verdict.limits[:LIMITS_SHOWN])
