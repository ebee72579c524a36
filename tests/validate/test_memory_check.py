"""What a device does not show is looked for by other means; and how cases share processes."""

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.profilers.sanitizer import Sanitized, Tool
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, Violation
from pytorch_to_triton.validate.memory_check import (
    TOOLS,
    MemoryCheck,
    look_under_the_interpreter,
    look_under_the_sanitizer,
)
from pytorch_to_triton.validate.trial import units

from .kernel_files import corpus_file
from .trials import small_cases, trial_of

pytestmark = pytest.mark.anyio
SANITIZER = f"""#!{sys.executable}
# Runs a program as the tool does, and reports that nothing was wrong.
import subprocess, sys
program = sys.argv.index({sys.executable!r})
code = subprocess.run(sys.argv[program:]).returncode
with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as report:
    report.write("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n")
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cheating/copy_with_idle_kernel", "output_without_kernel"),
        ("wrong/stores_one_past_end", "store_outside"),
    ],
)
async def test_what_a_device_does_not_show_is_seen_in_the_guarded_interpreter(
    name: str, kind: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=corpus_file(tmp_path, name))
    found = MemoryCheck()
    async with trial_of(worker, target, interpreter) as (trial, case):
        await look_under_the_interpreter(trial, [case], found)
    assert [violation.kind for violation in found.by_case[case.name]][:1] == [kind]
    assert found.unable == {}


def test_a_case_without_a_fault_on_the_device_fails_with_what_was_seen_elsewhere() -> None:
    seen = Violation(kind="race", message="Programs 0 and 1 race.", suggestion="Do not.")
    found = MemoryCheck(by_case={"N=40": (seen,), "N=1": ()})

    def merged(status: CaseStatus, name: str = "N=40") -> CaseResult:
        return found.merged(CaseResult(name=name, group="declared", status=status, why="So it was."))

    statuses: tuple[CaseStatus, ...] = ("passed", "skipped", "undecided", "crashed")
    assert [merged(status).status for status in statuses] == ["failed", "failed", "failed", "crashed"]
    assert (merged("skipped").violations, merged("skipped").why) == ((seen,), f"{seen.message} So it was.")
    assert merged("skipped", "N=1").status == "skipped"


async def test_what_runs_under_the_sanitizer_leaves_the_candidates_own_results_alone(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(SANITIZER)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    target = Target(path=corpus_file(tmp_path, "wrong/stores_one_past_end"))
    reports: dict[Tool, Sanitized] = {}
    async with trial_of(worker, target, interpreter) as (trial, case):
        await look_under_the_sanitizer(trial, [case], TOOLS[:1], reports)
        written = {folder.name for folder in (trial.setting.folder / "outputs").iterdir()}
    assert {tool: report.status for tool, report in reports.items()} == {TOOLS[0]: "clean"}
    assert written == {f"candidate-{TOOLS[0]}"}


async def test_cases_of_the_same_sizes_and_dtypes_are_called_in_one_process(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=corpus_file(tmp_path, "cheating/caches_by_fingerprint"))
    cases = await small_cases(worker, target, interpreter)
    found = units(cases)
    assert sorted(case.name for unit in found for case in unit) == sorted(case.name for case in cases)
    assert all(len({(str(case.dims), str(case.dtypes)) for case in unit}) == 1 for unit in found)
    assert max(map(len, found)) >= 3
    for unit in found:
        for before, case in pairwise(unit):
            assert case.again_after in (None, before.name)
