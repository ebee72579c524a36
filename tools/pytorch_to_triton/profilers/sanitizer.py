"""A job under NVIDIA's compute-sanitizer: what it saw of accesses that no kernel may make.

Its options: docs.nvidia.com/compute-sanitizer/ComputeSanitizer.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import psutil

from pytorch_to_triton import places
from pytorch_to_triton.jobs.conversation import END, REQUESTS
from pytorch_to_triton.jobs.outcome import Progress, describe_end, read_outcome, write_end
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.sanitizer_report import Hazard, complaint, counted_errors, parse_report
from pytorch_to_triton.schema.job import Job, Outcome, Runtime, Status
from pytorch_to_triton.schema.value import Value

Tool = Literal["memcheck", "racecheck"]

NAME = "compute-sanitizer"
REPORT = "sanitizer.txt"
"""What the tool wrote, in the run folder; apart from what the job prints, which may look the same."""
ERRORS_SEEN = 86
"""Its exit code when the job succeeded and it saw errors: the job's process has no hand in that."""
PRINT_LIMIT = 1000
PADDING_BYTES = 2**20
"""Between allocations, so that an access far past the end of one does not hit the next one unseen."""
OPTIONS = (
    "--target-processes", "application-only",
    "--launch-timeout", "0",  # importing torch from a cold disk takes longer than its 10 s
    "--error-exitcode", str(ERRORS_SEEN),
    "--print-limit", str(PRINT_LIMIT),
    "--show-backtrace", "device",
    "--report-api-errors", "no",  # torch probes for functions that a driver may not have
    "--destroy-on-device-error", "kernel",  # the cases after a wrong one are run too
)  # fmt: skip
TOOL_OPTIONS: dict[Tool, tuple[str, ...]] = {
    "memcheck": ("--padding", str(PADDING_BYTES)),
    "racecheck": ("--racecheck-report", "analysis"),
}
UNSET = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TRITON_DISABLE_LINE_INFO")
"""Another allocator hides where an allocation ends; without line information no line can be named."""
RUN = "PYTORCH_TO_TRITON_RUN"
"""The variable that names the run folder to each process that runs for it."""
_END_SECONDS = 15.0
"""How long killed processes may take to be gone; with a device busy, it takes a while."""


class Sanitized(Value):
    """How a job under the tool ended."""

    status: Literal["clean", "found", "failed"]
    """clean: the job answered, and the tool checked all of it and found nothing. failed: nothing is known."""
    hazards: tuple[Hazard, ...] = ()
    detail: str = ""
    """Why it failed; else how a job with hazards ended, where it did not answer."""
    items: tuple[dict[str, Any], ...] = ()
    """What the job handed over on its way."""


def find_sanitizer() -> Path | None:
    """The tool on PATH, else the one of CUDA_HOME, else of /usr/local/cuda; None where there is none."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    searched = [None, *(str(Path(home) / "bin") for home in homes if home)]
    found = (shutil.which(NAME, path=path) for path in searched)
    return next((Path(path).absolute() for path in found if path), None)


async def sanitized(
    folders: RunFolders,
    job: Job,
    requests: Sequence[Mapping[str, Any]],
    runtime: Runtime,
    tool: Tool,
    *,
    seconds: float,
) -> Sanitized:
    """Do one job in a process of its own under the tool, for at most `seconds` from its start.

    `requests` are all that it will be asked, where it takes requests.

    That includes importing torch, and kernels run many times slower. Each tensor has an allocation of its
    own, so that its real end is known. What goes wrong is a result, never an exception; cancelling kills the
    job and the tool.
    """
    program = find_sanitizer()
    if program is None:
        return Sanitized(status="failed", detail=f"{NAME} is not installed; it comes with the CUDA toolkit")
    await anyio.to_thread.run_sync(folders.make_room)
    with folders.new(job, runtime) as folder:
        asked = "".join(json.dumps(request) + "\n" for request in (*requests, END))
        (folder / REQUESTS).write_text(asked, encoding="utf-8")
        try:
            process = _started(_command(program, tool, folder, runtime), folder, runtime)
        except OSError as error:
            return Sanitized(status="failed", detail=f"{program} cannot be started: {error.strerror}")
        try:
            status, detail = await _end(process, folder, seconds)
        except anyio.get_cancelled_exc_class():
            write_end(folder, "cancelled", "")
            raise
        progress = Progress(folder)
        await progress.follow(None)
        outcome = read_outcome(folder, progress, status, detail)
        return _judged(_text(folder / REPORT), process.returncode, outcome)


def _command(program: Path, tool: Tool, folder: Path, runtime: Runtime) -> list[str]:
    checked = [
        str(program),
        "--tool",
        tool,
        *OPTIONS,
        *TOOL_OPTIONS[tool],
        "--log-file",
        str(folder / REPORT),
    ]
    return [*checked, runtime.python, "-P", str(places.WORKER / "bootstrap.py"), str(folder)]


def _started(command: list[str], folder: Path, runtime: Runtime) -> subprocess.Popen[bytes]:
    """The tool, leader of a process group of its own; what it and the job print goes to `log.txt`."""
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**environment(runtime), RUN: str(folder)},
            start_new_session=True,
        )


async def _end(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> tuple[Status, str]:
    """How it ended, were there no reply; no process is left behind."""
    try:
        with anyio.move_on_after(seconds) as limit:
            await _ended(process.pid)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_kill, process, folder)
    if limit.cancelled_caught:
        return "timed_out", f"not done within {seconds:g} s"
    code = process.returncode
    return "crashed", describe_end(code << 8 if code >= 0 else -code)


def environment(runtime: Runtime) -> dict[str, str]:
    """This process's environment, with one device allocation a tensor and the runtime's devices."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    devices = {} if runtime.devices is None else {"CUDA_VISIBLE_DEVICES": runtime.devices}
    return {**kept, **devices, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


async def _ended(pid: int) -> None:
    """Wait until a child has ended; it is not collected, so that its number stays its own."""
    wait = (os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    await anyio.to_thread.run_sync(os.waitid, *wait, abandon_on_cancel=True)


def _kill(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill the tool, and all that it and the job have started; returns when they are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + _END_SECONDS
    # The tool's launcher and a job may lead groups of their own, and outlive a tool that the job has killed.
    while (left := _left_of(folder)) and time.monotonic() < deadline:
        for descendant in left:
            with suppress(psutil.Error):
                descendant.kill()
        psutil.wait_procs(left, timeout=1)


def _left_of(folder: Path) -> list[psutil.Process]:
    """The processes that run for the job in `folder`: each inherits the name of it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended, or is another user's
            if process.environ().get(RUN) == str(folder):
                found.append(process)
    return found


def _text(report: Path) -> str:
    try:
        return report.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _judged(report: str, exit_code: int, outcome: Outcome) -> Sanitized:
    hazards = parse_report(report)
    if hazards:
        return Sanitized(status="found", hazards=hazards, detail=outcome.detail, items=outcome.items)
    why = _why_nothing_is_known(report, exit_code, outcome)
    return Sanitized(status="failed" if why else "clean", detail=why, items=outcome.items)


def _why_nothing_is_known(report: str, exit_code: int, outcome: Outcome) -> str:
    """Why a report without hazards does not show that there are none; empty where it does."""
    if message := complaint(report):
        return message
    if outcome.status != "answered":
        return f"the job did not answer: {outcome.detail}"
    errors = counted_errors(report)
    if errors or exit_code == ERRORS_SEEN:
        return f"{NAME} counts errors that it does not name"
    if exit_code != 0:
        return f"{NAME} ended with exit code {exit_code}"
    return f"{NAME} left no summary" if errors is None else ""
