"""A baseline lets only new findings count, however the lines move."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.audit.audit import AuditRequest, audit
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.finding import AuditReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .test_audit import Steps, nothing_runs

pytestmark = pytest.mark.anyio

Auditing = Callable[..., Awaitable[AuditReport]]
LOOP = "    while n:\n        break\n"
SOURCE = f"import triton\n\n@triton.jit\ndef kernel(n):\n{LOOP}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    (tmp_path / "kernel.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def read(worker: WorkerClient, project: Path) -> Auditing:
    async def read(**asked: Any) -> AuditReport:
        wanted = {
            "targets": (Target(path=project),),
            "evidence": "source",
            "severity": "medium",
            "baseline": project / "known.json",
        }
        runtime: Callable[[], Awaitable[Runtime]] = nothing_runs
        return await audit(worker, AuditRequest(**{**wanted, **asked}), runtime, Steps())

    return read


async def test_what_the_baseline_holds_does_not_count_and_is_still_listed(
    read: Auditing, project: Path
) -> None:
    first = await read(update_baseline=True)
    assert (first.verdict, len(first.findings)) == ("faulty", 1)
    again = await read()
    assert (again.verdict, [finding.known for finding in again.findings]) == ("not run", [True])
    assert "1 of them is in the baseline." in again.summary


async def test_a_finding_stays_known_where_lines_move_and_a_second_one_is_new(
    read: Auditing, project: Path
) -> None:
    await read(update_baseline=True)
    moved = SOURCE.replace("import triton\n", "import triton\n\nA = 1\n")
    (project / "kernel.py").write_text(moved + LOOP, encoding="utf-8")
    report = await read()
    assert [finding.known for finding in report.findings] == [True, False]
    assert report.verdict == "faulty"


async def test_a_baseline_that_is_missing_or_no_baseline_is_refused(read: Auditing, project: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        await read()
    (project / "known.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(BadInput, match="is not an audit baseline"):
        await read()


async def test_an_update_without_a_file_is_refused(read: Auditing) -> None:
    with pytest.raises(BadInput, match="no baseline to update"):
        await read(update_baseline=True, baseline=None)


async def test_an_update_of_a_part_keeps_what_is_known_of_the_rest(read: Auditing, project: Path) -> None:
    (project / "other.py").write_text(SOURCE, encoding="utf-8")
    await read(update_baseline=True)
    await read(update_baseline=True, targets=(Target(path=project / "other.py"),))
    await read(update_baseline=True, rules=("deprecated_api",))
    assert [finding.known for finding in (await read()).findings] == [True, True]
