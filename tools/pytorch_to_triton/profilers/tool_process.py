"""A job of the worker under one of NVIDIA's tools, which is found, run and ended with all it started."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from pytorch_to_triton import places
from pytorch_to_triton.jobs.outcome import Messages, describe_status, write_outcome
from pytorch_to_triton.schema.job import Outcome, Runtime, Status
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded

MESSAGES = "messages.jsonl"
"""In the run folder, one message a line: what a job without a client has said."""
RUN = "PYTORCH_TO_TRITON_RUN"
"""The variable that names the run folder to each process that runs for it."""
_END_SECONDS = 15.0
"""How long killed processes may take to be gone; with a device busy, it takes a while."""


def find_tool(name: str) -> Path | None:
    """The tool on PATH, else the one of CUDA_HOME, else of /usr/local/cuda; None where there is none."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    searched = [None, *(str(Path(home) / "bin") for home in homes if home)]
    paths = (shutil.which(name, path=path) for path in searched)
    return next((Path(path).absolute() for path in paths if path), None)


def worker_command(runtime: Runtime, folder: Path) -> list[str]:
    """Does the job of a run folder, without a fork server."""
    return [runtime.python, "-P", str(places.WORKER / "bootstrap.py"), str(folder)]


async def run_tool(
    command: list[str], folder: Path, environment: Mapping[str, str], *, seconds: float
) -> tuple[Outcome, int]:
    """The job's outcome and the tool's exit code. Raises OSError where the tool cannot be started.

    Cancelling kills the job and the tool.
    """
    process = _start(command, folder, environment)
    end: tuple[Status, str] = "cancelled", ""
    try:
        end = await _end(process, folder, seconds)
    finally:
        outcome = _messages_in(folder).outcome(folder, *end)
        write_outcome(outcome)
    return outcome, process.returncode


def text_of(report: Path) -> str:
    """Empty where the tool left none."""
    return report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""


def _messages_in(folder: Path) -> Messages:
    messages = Messages()
    # The last line is not whole where the job was killed.
    for line in text_of(folder / MESSAGES).split("\n")[:-1]:
        messages.note(decoded(wire.Message, json.loads(line)))
    return messages


def _start(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The tool, leader of a process group of its own; what it and the job print goes to `log.txt`."""
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**environment, RUN: str(folder)},
            start_new_session=True,
        )


async def _end(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> tuple[Status, str]:
    """How it ended, were there no reply; no process is left behind."""
    try:
        with anyio.move_on_after(seconds) as limit:
            await _stop(process.pid)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_kill, process, folder)
    if limit.cancelled_caught:
        return "timed_out", f"not done within {seconds:g} s"
    code = process.returncode
    return "crashed", describe_status(code << 8 if code >= 0 else -code)


async def _stop(pid: int) -> None:
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
    while (left := _remaining_processes(folder)) and time.monotonic() < deadline:
        for descendant in left:
            with suppress(psutil.Error):
                descendant.kill()
        psutil.wait_procs(left, timeout=1)


def _remaining_processes(folder: Path) -> list[psutil.Process]:
    """The processes that run for the job in `folder`: each inherits the name of it."""
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended, or is another user's
            if process.environ().get(RUN) == str(folder):
                left.append(process)
    return left
