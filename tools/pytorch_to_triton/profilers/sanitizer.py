"""A job under NVIDIA's compute-sanitizer: what it saw of accesses that no kernel may make.

Its options: docs.nvidia.com/compute-sanitizer/ComputeSanitizer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from pytorch_to_triton.jobs.environment import job_environment
from pytorch_to_triton.jobs.job_channel import REQUESTS
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.sanitizer_report import Hazard, complaint, counted_errors, parse_report
from pytorch_to_triton.profilers.tool_process import find_tool, run_tool, text_of, worker_command
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.as_json import encoded

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
    """The tool on PATH, else in CUDA's folders; None where there is none."""
    return find_tool(NAME)


async def sanitize(
    folders: RunFolders,
    job: Job,
    requests: Sequence[Any],
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
        asked = "".join(encoded(request) + "\n" for request in requests)
        (folder / REQUESTS).write_text(asked, encoding="utf-8")
        command = [*_command(program, tool, folder), *worker_command(runtime, folder)]
        try:
            outcome, exit_code = await run_tool(command, folder, environment(runtime), seconds=seconds)
        except OSError as error:
            return Sanitized(status="failed", detail=f"{program} cannot be started: {error.strerror}")
        return _judge(text_of(folder / REPORT), exit_code, outcome)


def _command(program: Path, tool: Tool, folder: Path) -> list[str]:
    return [str(program), "--tool", tool, *OPTIONS, *TOOL_OPTIONS[tool], "--log-file", str(folder / REPORT)]


def environment(runtime: Runtime) -> dict[str, str]:
    """This process's environment, with one device allocation a tensor and the runtime's devices."""
    kept = {name: value for name, value in job_environment().items() if name not in UNSET}
    devices = {} if runtime.devices is None else {"CUDA_VISIBLE_DEVICES": runtime.devices}
    return {**kept, **devices, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def _judge(report: str, exit_code: int, outcome: Outcome) -> Sanitized:
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
