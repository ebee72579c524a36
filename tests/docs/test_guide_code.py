"""Every code block of every guide does what the guide says: under the interpreter, and compiled for GPUs."""

import ast
import re
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
VERSIONS = "## Triton 3.6 to 3.9"
FEWEST_LINES, MOST_LINES = 80, 200

guides = pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)


@pytest.fixture(scope="session")
def compiled() -> Runtime:
    """Kernels are compiled."""
    return Runtime(python=sys.executable, interpreter=False)


async def problems_of(guide: Path, folder: Path, worker: WorkerClient, runtime: Runtime) -> list[str]:
    """`guide.md:LINE: words` for whatever does not behave as its tag says in this mode."""
    blocks = [block for block in blocks_of(guide) if block.kind != "shown"]
    source = folder / f"{guide.stem}.py"
    source.write_text(source_of(blocks), encoding="utf-8")
    arguments = {"source": str(source), "blocks": [described(block) for block in blocks]}
    outcome = await worker.ask(Job(kind=str(JOB), arguments=arguments), runtime, seconds=SECONDS)
    assert outcome.answer is not None, (outcome.during, outcome.detail, outcome.failure, outcome.log)
    return [f"{guide.name}:{line}: {words}" for line, words in outcome.answer["problems"]]


def described(block: Block) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": block.kind, "line": block.line, "text": block.text}
    if block.kind == "wrong":
        (mark,) = block.marks
        told |= {"verb": mark.verb, "name": mark.name, "mark": mark.line}
    return told


@guides
@pytest.mark.anyio
async def test_a_guide_computes_what_it_says(
    guide: Path, tmp_path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    assert await problems_of(guide, tmp_path, worker, interpreter) == []


@guides
@pytest.mark.anyio
async def test_a_guide_compiles_for_nvidia_and_amd(
    guide: Path, tmp_path: Path, worker: WorkerClient, compiled: Runtime
) -> None:
    assert await problems_of(guide, tmp_path, worker, compiled) == []


@guides
def test_a_guide_has_its_form(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    title, blank, paragraph, *_ = text.splitlines()
    assert title.startswith("# ")
    assert blank == ""
    assert paragraph[:1].isalpha()
    assert re.findall(r"^# ", prose, re.MULTILINE) == ["# "]
    assert re.findall(r"^## .*", prose, re.MULTILINE)[-1] == VERSIONS
    assert FEWEST_LINES <= len(text.splitlines()) <= MOST_LINES


@guides
def test_a_guide_says_what_its_code_does(guide: Path) -> None:
    blocks = blocks_of(guide)
    assert any(block.kind == "run" for block in blocks)
    for block in blocks:
        place = f"{guide.name}:{block.line}"
        assert len(block.marks) == (1 if block.kind == "wrong" else 0), place
        for mark in block.marks:
            assert mark.name, f"{place} names neither an exception nor what is wrong"
            if mark.verb == "wrong":
                assert isinstance(ast.parse(block.text).body[-1], ast.Assert), f"{place} asserts nothing"


@guides
def test_a_guide_uses_every_kernel_that_it_shows(guide: Path) -> None:
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
    tag: str, code: str, folder: Path, worker: WorkerClient, runtime: Runtime
) -> list[str]:
    """The problems of a guide that is right but for its last block."""
    guide = folder / "guide.md"
    guide.write_text(f"{HEAD}\n```python {tag}\n{code}```\n", encoding="utf-8")
    return await problems_of(guide, folder, worker, runtime)


def kernel_with(statement: str) -> str:
    """A launch on x: [3] of a kernel with this statement at the guide's line 25."""
    return (
        "@triton.jit\n"
        "def one_kernel(x_ptr, BLOCK_N: tl.constexpr):\n"
        "    offsets = tl.arange(0, BLOCK_N)\n"
        f"    {statement}\n"
        "one_kernel[(1,)](x, BLOCK_N=4)\n"
    )


@pytest.mark.parametrize(
    ("tag", "code", "words"),
    [
        pytest.param("", "assert x.shape == (4,)\n", "guide.md:22: AssertionError", id="assertion"),
        pytest.param("", kernel_with("tl.store(x_ptr + offsets, 1.0)"), "guide.md:25: writes", id="bounds"),
        pytest.param("wrong", "x + 1  # fails: TypeError\n", "raised nothing", id="no failure"),
        pytest.param("wrong", "x + ''  # fails: ValueError\n", "raised no ValueError", id="other failure"),
        pytest.param("wrong", "# fails: TypeError\nx + ''\n", "not raised on this line", id="other line"),
        pytest.param("wrong", "# wrong: it is right\nassert x.sum() != x.sum()\n", "Assertion", id="right"),
        pytest.param("wrong", kernel_with("offsets  # unsafe: no"), "touches no memory", id="safe"),
    ],
)
@pytest.mark.anyio
async def test_code_that_does_not_do_what_the_guide_says_is_told(
    tag: str, code: str, words: str, tmp_path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    (problem,) = await problems_after_head(tag, code, tmp_path, worker, interpreter)
    assert words in problem


@pytest.mark.parametrize(
    ("tag", "code", "words"),
    [
        pytest.param("", kernel_with("tl.relu(offsets)"), "guide.md:25: CompilationError", id="compilation"),
        pytest.param("wrong", kernel_with("offsets  # refused: TypeError"), "raised nothing", id="accepted"),
        pytest.param(
            "compiled",
            "assert 'absent' in double_kernel.warmup(x, x, 3, 4, grid=(1,)).asm\n",
            "Assert",
            id="asm",
        ),
        pytest.param("no-run", "triton.testing.absent(x)\n", "no attribute 'absent'", id="name"),
        pytest.param("no-run", "from triton import absent\n", "cannot import name 'absent'", id="import"),
    ],
)
@pytest.mark.anyio
async def test_code_that_does_not_compile_as_the_guide_says_is_told(
    tag: str, code: str, words: str, tmp_path: Path, worker: WorkerClient, compiled: Runtime
) -> None:
    (problem,) = await problems_after_head(tag, code, tmp_path, worker, compiled)
    assert words in problem


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(kernel_with("tl.relu(offsets)  # fails: AttributeError"), id="fails"),
        pytest.param(kernel_with("tl.load(x_ptr + offsets)  # unsafe: past the end"), id="unsafe"),
        pytest.param("y = 3 * x  # wrong: not doubled\nassert not torch.equal(y, out)\n", id="wrong"),
    ],
)
@pytest.mark.anyio
async def test_a_mistake_that_shows_as_the_guide_says_is_no_problem(
    code: str, tmp_path: Path, worker: WorkerClient, interpreter: Runtime, compiled: Runtime
) -> None:
    assert await problems_after_head("wrong", code, tmp_path, worker, interpreter) == []
    assert await problems_after_head("wrong", code, tmp_path, worker, compiled) == []


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
