"""A file that is nested too deeply is reported by name, and the audit of the others goes on."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.audit import AuditRequest, audit
from pytorch_to_triton.audit.read_source import read
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.target import Target

from .test_audit import Steps, nothing_runs

pytestmark = pytest.mark.anyio

DEEP = 100_000
HEAD = "import triton\n\n@triton.jit\ndef kernel(n):\n    x = "
NESTED = {
    "parentheses": HEAD + "(" * DEEP + "n" + ")" * DEEP,
    "lists": HEAD + "[" * DEEP + "]" * DEEP,
    "attributes": HEAD + "n" + ".x" * DEEP,
    "attributes that parse": HEAD + "n" + ".x" * 1500,
    "sums": HEAD + "n" + " + n" * DEEP,
    "signs": HEAD + "-" * DEEP + "n",
    "powers": HEAD + "n" + "**n" * DEEP,
    "conditions": HEAD + "n if n else " * DEEP + "n",
    "elifs": HEAD + "n\n    if n:\n        x = n" + "\n    elif n:\n        x = n" * DEEP,
    "ifs": HEAD + "n" + "".join(f"\n{' ' * depth}if n:" for depth in range(4, 120)) + " pass",
    "calls": HEAD + "n" + "()" * DEEP,
    "lambdas": HEAD + "lambda: " * DEEP + "n",
}
FAULTY = "import triton\n\n@triton.jit\ndef kernel(n):\n    while n:\n        break\n"


@pytest.mark.parametrize("source", NESTED.values(), ids=NESTED.keys())
def test_a_file_that_is_nested_too_deeply_is_reported(source: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert read(file).refusal == f"{file} is nested too deeply to be read."


async def test_the_other_files_of_a_folder_are_audited(worker: WorkerClient, tmp_path: Path) -> None:
    kinds = ("parentheses", "signs", "attributes that parse")
    deep = {tmp_path / f"deep_{number}.py": NESTED[kind] for number, kind in enumerate(kinds)}
    for file, source in deep.items():
        file.write_text(source + "\n", encoding="utf-8")
    (tmp_path / "faulty.py").write_text(FAULTY, encoding="utf-8")
    request = AuditRequest(targets=(Target(path=tmp_path),), evidence="source", severity="medium")
    report = await audit(worker, request, nothing_runs, Steps())
    assert [finding.rule for finding in report.findings] == ["unsupported_syntax"]
    assert {one.file for one in report.unread} == set(deep)
    assert f"{len(deep)} files could not be read." in report.summary
