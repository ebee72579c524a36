"""What the pages promise is there: files, make targets, commands, and examples that run."""

import ast
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.inputs.declaration import parse_declaration, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate
from pytorch_to_triton_server.catalogue import TOOLS

ROOT = Path(__file__).parents[2]
REFERENCES = ROOT / "references"
PAGES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "SKILL.md")),
    *sorted(REFERENCES.glob("*.md")),
]
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What `#` may name in a page, by the rules of the usual code hosts."""
    headings = re.findall(r"^#+ (.+)", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pages
def test_a_page_links_only_to_files_and_sections_that_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", re.sub(r"`[^`\n]+`", "", prose(page)))
    for path, _, section in (link.partition("#") for link in links if "://" not in link):
        linked = page.parent / path if path else page
        assert linked.exists(), path
        assert not section or section in anchors(linked), f"{path}#{section}"


@pages
def test_a_page_names_only_paths_that_exist(page: Path) -> None:
    named = re.findall(rf"(?:^|[`\s])((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*)", page.read_text())
    ours = [
        path
        for path in named
        if "NAME" not in path and not path.startswith(("benchmarks/", "converted/", ".venv/"))
    ]
    assert [path for path in ours if not (ROOT / path.rstrip(".")).exists()] == []


@pages
def test_a_page_names_only_targets_of_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make (?:-C \S+ |[A-Z]+=\S+ )?([a-z-]+)", page.read_text(), re.MULTILINE)
    assert set(named) <= targets


@pages
def test_a_page_shows_only_commands_that_exist(page: Path) -> None:
    commands = {tool.name.replace("_", " ") for tool in TOOLS} | {
        "sweep",
        "serve",
        "install",
        "doctor",
        "completion",
    }
    shown = re.findall(r"^\S*pytorch-to-triton (\w+)( \w+)?", page.read_text(), re.MULTILINE)
    assert [f"{one}{two}" for one, two in shown if not {one, f"{one}{two}"} & commands] == []


@pytest.mark.anyio
async def test_the_kernel_file_of_the_references_is_right(
    tmp_path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    (source,) = blocks(REFERENCES / "kernel_file.md", "python")
    kernel = tmp_path / "scaled_rows.py"
    kernel.write_text(source, encoding="utf-8")
    cases = ("M=7 N=33", "M=7 N=33 x transposed", "M=1 N=1000 bfloat16", "M=0 N=33", "M=7 N=33 nan in x")
    request = ValidationRequest(candidate=Target(path=kernel), cases=cases)
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary


def test_the_readme_shows_the_kernel_that_convert_writes() -> None:
    *_, shown = blocks(ROOT / "README.md", "python")
    golden = ROOT / "tests" / "convert" / "draft" / "golden" / "rms_norm_residual.py"
    assert ast.unparse(ast.parse(shown)) in map(ast.unparse, ast.parse(golden.read_text()).body)


def test_the_declarations_of_the_references_parse() -> None:
    (source,) = blocks(REFERENCES / "declaring_inputs.md", "python")
    declared: dict[str, Any] = {}
    exec(source, declared)
    declaration = parse_declaration(declared["INPUTS"], declared["DIMS"], declared["REQUIRES"])
    assert declaration.shape_of("keep", {"M": 7, "N": 64}) == (7, 64)


def test_the_options_of_the_references_parse() -> None:
    options = []
    for line in blocks(REFERENCES / "declaring_inputs.md", "sh"):
        words = shlex.split(line)
        given = {o: [v for w, v in pairwise(words) if w == o] for o in ("--input", "--dim")}
        options.append(parse_options(given["--input"], given["--dim"]))
    plain, listed, packed = options
    assert plain.dims.keys() == {"M", "N"}
    assert listed.inputs["cap"] == "30.0|0.0"
    assert packed.inputs["pair"] == {"Pair()": {"low": "float32[M]", "high": "float32[M]"}}
