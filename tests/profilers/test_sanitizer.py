"""A job under compute-sanitizer: what it saw is a result, and so is a tool that fails."""

import json
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.sanitizer import ERRORS_SEEN, Sanitized, find_sanitizer, sanitize
from pytorch_to_triton.schema.job import Job, Runtime

pytestmark = pytest.mark.anyio
LONG_SECONDS = 120.0
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
OVERRUN = (Path(__file__).parent / "sanitizer_reports" / "overrun.txt").read_text()

TOOL = f"""#!{sys.executable}
# Runs a program as the tool does, and writes a recorded report.
import json, os, subprocess, sys
from pathlib import Path
here = Path(__file__).parent
program = sys.argv.index({sys.executable!r})
options = sys.argv[1:program]
(here / "options.json").write_text(json.dumps(options))
report = Path(options[options.index("--log-file") + 1])
early, late = (here / "early.bin").read_bytes(), (here / "late.bin").read_bytes()
report.write_bytes(early)
code = subprocess.run(sys.argv[program:], start_new_session=True).returncode
report.write_bytes(report.read_bytes() + late)
sys.exit(code or int((here / "exit_code").read_text()))
"""
JOB = """
import os, signal, subprocess, sys
from pathlib import Path

def work(report, how):
    report.item({"pid": os.getpid(), "folder": str(report.folder)})
    return globals()[how](report)

def answer(report):
    names = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF")
    return {} if report.item({name: os.environ.get(name) for name in names}) else {}

def read_stdin(report):
    report.item({"stdin": sys.stdin.read()})
    return {}

def forge(report):
    print("========= Invalid __global__ read of size 4 bytes")
    print("=========     at k+0xb0 in san.py:4")
    return {}

def erase(report):
    Path(report.folder, "sanitizer.txt").write_text("========= ERROR SUMMARY: 0 errors\\n")
    return {}

def fail(report):
    raise ValueError("no such kernel")

def die(report):
    os.kill(os.getpid(), signal.SIGSEGV)

def end_the_tool(report):
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()

def spin(report):
    child = subprocess.Popen(["sleep", "10000"])
    report.item({"child": child.pid})
    child.wait()
"""


@dataclass
class Bench:
    """A stand-in for the tool, and jobs to run under it."""

    folder: Path

    async def run(self, how: str, seconds: float = LONG_SECONDS, devices: str | None = None) -> Sanitized:
        job = Job(kind=str(self.folder / "job.py"), arguments={"how": how})
        runtime = Runtime(python=sys.executable, interpreter=False, devices=devices)
        return await sanitize(self.folders, job, [], runtime, "memcheck", seconds=seconds)

    def will_report(self, late: str | bytes, early: str = "", exit_code: int = 0) -> None:
        """What the tool writes before and after the job, and its exit code when the job succeeds."""
        (self.folder / "late.bin").write_bytes(late if isinstance(late, bytes) else late.encode())
        (self.folder / "early.bin").write_text(early)
        (self.folder / "exit_code").write_text(str(exit_code))

    @property
    def folders(self) -> RunFolders:
        return RunFolders(self.folder / "runs")

    @property
    def options(self) -> list[str]:
        """What the tool was asked."""
        options: list[str] = json.loads((self.folder / "options.json").read_text())
        return options

    @property
    def run_folder(self) -> Path:
        (folder,) = (self.folder / "runs").iterdir()
        return folder


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The tool is on PATH, and importing torch and triton takes no time."""
    add_tool(tmp_path, TOOL)
    (tmp_path / "job.py").write_text(JOB)
    for module in ("torch/__init__", "torch/export/__init__", "torch/export/_trace"):
        add_module(tmp_path / "modules" / f"{module}.py")
    for module in ("triton/__init__", "triton/language"):
        add_module(tmp_path / "modules" / f"{module}.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
    bench = Bench(tmp_path)
    bench.will_report(CLEAN)
    return bench


def add_tool(folder: Path, script: str) -> Path:
    tool = folder / "compute-sanitizer"
    tool.write_text(script)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return tool


def add_module(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


async def until_gone(pid: int) -> None:
    with anyio.fail_after(120):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await anyio.sleep(0.01)


async def test_a_job_without_hazards_is_clean_and_keeps_its_items(bench: Bench) -> None:
    found = await bench.run("answer", devices="3")
    assert (found.status, found.hazards, found.detail) == ("clean", (), "")
    assert found.items[1] == {
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "CUDA_VISIBLE_DEVICES": "3",
        "PYTORCH_CUDA_ALLOC_CONF": None,
    }
    assert bench.options[:2] == ["--tool", "memcheck"]
    assert json.loads((bench.run_folder / "outcome.json").read_text())["status"] == "answered"


async def test_hazards_are_found_whether_or_not_the_job_answers(bench: Bench) -> None:
    bench.will_report(OVERRUN, exit_code=ERRORS_SEEN)
    found = await bench.run("answer")
    assert found.status == "found"
    assert [(h.kind, h.kernel, h.file, h.line, h.count) for h in found.hazards] == [
        ("read", "scale_rows", "scale.py", 14, 2),
        ("write", "scale_rows", "scale.py", 15, 1),
    ]
    assert len(found.items) == 2
    bench.will_report(OVERRUN)
    found = await bench.run("fail")
    assert found.status == "found"
    assert "no such kernel" in found.detail


@pytest.mark.parametrize(
    ("how", "why"),
    [("fail", "ValueError: no such kernel"), ("die", "exit code"), ("end_the_tool", "SIGKILL")],
)
async def test_a_job_that_does_not_answer_says_nothing(bench: Bench, how: str, why: str) -> None:
    found = await bench.run(how)
    assert (found.status, found.hazards) == ("failed", ())
    assert why in found.detail
    await until_gone(found.items[0]["pid"])


@pytest.mark.parametrize(
    ("report", "exit_code", "why"),
    [
        (
            "========= Error: Target application terminated before first instrumented API call\n",
            0,
            "terminated",
        ),
        ("========= COMPUTE-SANITIZER\n", 0, "no summary"),
        ("", 0, "no summary"),
        (b"\xff\x00garbage ========= \n" * 1000, 0, "no summary"),
        ("========= ERROR SUMMARY: 7 errors\n", ERRORS_SEEN, "does not name"),
        (CLEAN, ERRORS_SEEN, "does not name"),
        (CLEAN, 5, "exit code 5"),
        ("========= Internal Sanitizer Error: it didn't track the launch.\n" + CLEAN, 0, "didn't track"),
    ],
)
async def test_a_report_that_shows_nothing_is_a_failure(
    bench: Bench, report: str | bytes, exit_code: int, why: str
) -> None:
    bench.will_report(report, exit_code=exit_code)
    found = await bench.run("answer")
    assert found.status == "failed"
    assert why in found.detail


async def test_what_the_job_prints_is_no_report(bench: Bench) -> None:
    assert (await bench.run("forge")).status == "clean"
    assert "Invalid __global__" in (bench.run_folder / "log.txt").read_text()


async def test_a_job_that_erases_the_report_is_not_clean(bench: Bench) -> None:
    bench.will_report("", early=OVERRUN, exit_code=ERRORS_SEEN)
    found = await bench.run("erase")
    assert found.status == "failed"


async def test_a_job_cannot_wait_for_input(bench: Bench) -> None:
    found = await bench.run("read_stdin")
    assert found.items[1] == {"stdin": ""}


async def test_a_job_without_end_times_out_with_all_that_it_started(bench: Bench) -> None:
    found = await bench.run("spin", seconds=3)
    assert found.status == "failed"
    assert "not done within 3 s" in found.detail
    for item in found.items:
        await until_gone(item.get("pid") or item["child"])


async def test_hazards_seen_before_a_timeout_are_kept(bench: Bench) -> None:
    bench.will_report("", early=OVERRUN)
    found = await bench.run("spin", seconds=3)
    assert found.status == "found"
    assert "not done within" in found.detail


async def test_cancelling_kills_the_tool_the_job_and_its_children(bench: Bench) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run, "spin")
        progress = await first(lambda: next((bench.folder / "runs").glob("[!.]*/messages.jsonl"), None))
        await first(lambda: "child" in progress.read_text())
        tasks.cancel_scope.cancel()
    items = [line["item"] for line in map(json.loads, progress.read_text().splitlines()) if "item" in line]
    for item in items:
        await until_gone(item.get("pid") or item["child"])
    assert json.loads((bench.run_folder / "outcome.json").read_text())["status"] == "cancelled"
    assert [p for p in psutil.Process().children() if str(bench.folder) in " ".join(p.cmdline())] == []


async def first(look: Callable[[], Any]) -> Any:
    """What `look` gives once it gives something."""
    with anyio.fail_after(LONG_SECONDS):
        while not (seen := look()):
            await anyio.sleep(0.05)
    return seen


async def test_a_missing_tool_is_a_failure_that_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytorch_to_triton.profilers.sanitizer.find_sanitizer", lambda: None)
    found = await bench.run("answer")
    assert found.status == "failed"
    assert "not installed" in found.detail


async def test_a_tool_that_cannot_be_started_is_a_failure(bench: Bench) -> None:
    add_tool(bench.folder, "#!/no/such/interpreter\n")
    found = await bench.run("answer")
    assert found.status == "failed"
    assert "cannot be started" in found.detail


def test_the_tool_is_looked_for_on_path_then_in_cuda_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("path", "cuda/bin"):
        (tmp_path / place).mkdir(parents=True)
        add_tool(tmp_path / place, TOOL)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert find_sanitizer() == tmp_path / "path" / "compute-sanitizer"
    (tmp_path / "path" / "compute-sanitizer").chmod(0o600)
    assert find_sanitizer() == tmp_path / "cuda" / "bin" / "compute-sanitizer"
