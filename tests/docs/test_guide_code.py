"""Every code block of every guide does what the guide says: under the interpreter, and compiled for GPUs."""

import ast
import re
import sys
from collections.abc import Sequence
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
    guides: Sequence[Path], folder: Path, worker: WorkerClient, runtime: Runtime
) -> list[list[str]]:
    """For each guide `guide.md:LINE: text` for whatever does not behave as its tag says in this runtime."""
    pages = []
    for number, guide in enumerate(guides):
        blocks = [block for block in blocks_of(guide) if block.kind != "shown"]
        source = folder / f"{guide.stem}_{number}_{runtime.interpreter}.py"
        source.write_text(source_of(blocks), encoding="utf-8")
        pages.append({"source": str(source), "blocks": [described(block) for block in blocks]})
    outcome = await worker.ask(Job(kind=str(JOB), arguments={"pages": pages}), runtime, seconds=SECONDS)
    assert outcome.answer is not None, (outcome.during, outcome.detail, outcome.failure, outcome.log)
    return [
        [f"{guide.name}:{line}: {text}" for line, text in problems]
        for guide, problems in zip(guides, outcome.answer["problems"], strict=True)
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
    found = await problems_of(GUIDES, tmp_path, worker, interpreter)
    assert [problem for problems in found for problem in problems] == []


@pytest.mark.anyio
async def test_the_guides_compile_for_nvidia_and_amd(
    tmp_path: Path, worker: WorkerClient, compiled: Runtime
) -> None:
    found = await problems_of(GUIDES, tmp_path, worker, compiled)
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


def test_a_guide_uses_every_kernel_that_it_shows() -> None:
    for guide in GUIDES:
        source = source_of([block for block in blocks_of(guide) if block.kind != "no-run"])
        kernels = re.findall(r"^ *@triton\.jit.*\n *def (\w+)", source, re.MULTILINE)
        assert [kernel for kernel in kernels if len(re.findall(rf"\b{kernel}\b", source)) < 2] == []


HEAD = """```python
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK_N: tl.constexpr):
    offsets = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, 2 * x, mask=offsets < n)


x = torch.randn(3, device=DEVICE)
out = torch.empty_like(x)
double_kernel[(1,)](x, out, 3, BLOCK_N=4)
torch.testing.assert_close(out, 2 * x)
assert out.shape == (3,)
```
"""
"""A right guide; what comes after it starts at line 22."""


async def problems_after_head(
    tails: Sequence[tuple[str, str]], folder: Path, worker: WorkerClient, runtime: Runtime
) -> list[list[str]]:
    """The problems of guides that are right but for their last blocks, each given as its tag and code."""
    guides = []
    for number, (tag, code) in enumerate(tails):
        guides.append(folder / f"guide_{number}.md")
        guides[-1].write_text(f"{HEAD}\n```python {tag}\n{code}```\n", encoding="utf-8")
    return await problems_of(guides, folder, worker, runtime)


def kernel_with(statement: str) -> str:
    """A launch on x: [3] of a kernel with this statement at the guide's line 25."""
    return (
        "@triton.jit\n"
        "def one_kernel(x_ptr, BLOCK_N: tl.constexpr):\n"
        "    offsets = tl.arange(0, BLOCK_N)\n"
        f"    {statement}\n"
        "one_kernel[(1,)](x, BLOCK_N=4)\n"
    )


WRONG_WHEN_RUN = [
    ("", "assert x.shape == (4,)\n", ":22: AssertionError"),
    ("", kernel_with("tl.store(x_ptr + offsets, 1.0)"), ":25: writes"),
    ("wrong", "x + 1  # fails: TypeError\n", "raised nothing"),
    ("wrong", "x + ''  # fails: ValueError\n", "raised no ValueError"),
    ("wrong", "# fails: TypeError\nx + ''\n", "not raised on this line"),
    ("wrong", "# wrong: it is right\nassert x.sum() != x.sum()\n", "Assertion"),
    ("wrong", kernel_with("offsets  # unsafe: no"), "touches no memory"),
]
WRONG_WHEN_COMPILED = [
    ("", kernel_with("tl.relu(offsets)"), ":25: CompilationError"),
    ("wrong", kernel_with("offsets  # refused: TypeError"), "raised nothing"),
    ("compiled", "assert 'absent' in double_kernel.warmup(x, x, 3, 4, grid=(1,)).asm\n", "Assert"),
    ("no-run", "triton.testing.absent(x)\n", "no attribute 'absent'"),
    ("no-run", "from triton import absent\n", "cannot import name 'absent'"),
]
RIGHTLY_WRONG = [
    ("wrong", kernel_with("tl.relu(offsets)  # fails: AttributeError")),
    ("wrong", kernel_with("tl.load(x_ptr + offsets)  # unsafe: past the end")),
    ("wrong", "y = 3 * x  # wrong: not doubled\nassert not torch.equal(y, out)\n"),
]


@pytest.mark.anyio
async def test_code_that_does_not_do_what_the_guide_says_is_reported(
    tmp_path: Path, worker: WorkerClient, interpreter: Runtime, compiled: Runtime
) -> None:
    for runtime, rows in ((interpreter, WRONG_WHEN_RUN), (compiled, WRONG_WHEN_COMPILED)):
        tails = [*((tag, code) for tag, code, _ in rows), *RIGHTLY_WRONG]
        found = await problems_after_head(tails, tmp_path, worker, runtime)
        for (_, code, text), problems in zip(rows, found, strict=False):
            (problem,) = problems
            assert text in problem, code
        assert found[len(rows) :] == [[]] * len(RIGHTLY_WRONG)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("```python norun\n```\n", "guide.md:1: python blocks are tagged", id="tag"),
        pytest.param("```sh\nls\n", "guide.md:1: this block is never closed", id="open"),
    ],
)
def test_a_guide_whose_blocks_cannot_be_told_apart_is_refused(text: str, words: str, tmp_path: Path) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        blocks_of(guide)
