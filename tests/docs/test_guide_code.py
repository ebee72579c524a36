"""Every code block of every guide does what the guide says: under the interpreter, and compiled for GPUs."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime

from .guide_blocks import Block, blocks_of, source_of

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs_cache" / "guides").glob("*.md"))
JOB = Path(__file__).parent / "jobs" / "guide_page.py"
SECONDS = 300.0


@pytest.fixture(scope="session")
def compiled() -> Runtime:
    """Kernels are compiled."""
    return Runtime(python=sys.executable, interpreter=False)


async def problems_of(
    folder: Path, worker: WorkerClient, runtime: Runtime, *, everywhere: bool = False
) -> list[list[str]]:
    """For each guide `guide.md:LINE: text` for whatever does not behave as its tag says in this runtime."""
    pages = []
    for number, guide in enumerate(GUIDES):
        blocks = [block for block in blocks_of(guide) if block.kind != "shown"]
        source = folder / f"{guide.stem}_{number}_{runtime.interpreter}.py"
        source.write_text(source_of(blocks), encoding="utf-8")
        pages.append({"source": str(source), "blocks": [described(block) for block in blocks]})
    job = Job(kind=str(JOB), arguments={"pages": pages, "everywhere": everywhere})
    outcome = await worker.ask(job, runtime, seconds=SECONDS)
    assert outcome.answer is not None, (outcome.during, outcome.detail, outcome.failure, outcome.log)
    return [
        [f"{guide.name}:{line}: {text}" for line, text in problems]
        for guide, problems in zip(GUIDES, outcome.answer["problems"], strict=True)
    ]


def described(block: Block) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": block.kind, "line": block.line, "text": block.text}
    if block.kind == "wrong":
        (mark,) = block.marks
        fields |= {"verb": mark.verb, "name": mark.name, "mark": mark.line}
    return fields


@pytest.mark.anyio
async def test_the_guides_compute_what_they_say(
    tmp_path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    found = await problems_of(tmp_path, worker, interpreter)
    assert [problem for problems in found for problem in problems] == []


@pytest.mark.anyio
@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.corpora)])
async def test_the_guides_compile_for_nvidia_and_amd(
    everywhere: bool, tmp_path: Path, worker: WorkerClient, compiled: Runtime
) -> None:
    found = await problems_of(tmp_path, worker, compiled, everywhere=everywhere)
    assert [problem for problems in found for problem in problems] == []


def test_a_guide_says_what_its_code_does() -> None:
    for guide in GUIDES:
        blocks = blocks_of(guide)
        assert any(block.kind == "run" for block in blocks)
        for block in blocks:
            place = f"{guide.name}:{block.line}"
            assert len(block.marks) == (1 if block.kind == "wrong" else 0), place
            for mark in block.marks:
                assert mark.name, f"{place} names neither an exception nor what is wrong"
                if mark.verb == "wrong":
                    assert isinstance(ast.parse(block.text).body[-1], ast.Assert), f"{place} asserts nothing"
