"""Run by test_timing.py in a process of its own: real timed processes without a GPU; prints results as JSON.

A process that forks must have one thread.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace as Commands
from typing import Any

import triton

from pytorch_to_triton.worker.job_report import MESSAGES, FolderChannel, JobReport
from pytorch_to_triton.worker.timing.rounds import TimedProcesses, all_rounds
from pytorch_to_triton.worker.timing.workers import Lost, WorkerProcess, start_process

SETTING = {"samples": 300, "full": True}
STARTED = {"input_bytes": 8, "output_bytes": 8, "free_bytes": 1 << 30, "call_ms": 1.0}
LIMIT_SECONDS = 20.0
assert triton  # as in every worker: reports of failures leave its frames out


def steady(milliseconds: float) -> Callable[[], Commands]:
    """A process whose every call takes this long by its own clock."""
    offsets: list[int] = []

    def fill(**given: Any) -> None:
        offsets[:] = given["offsets"]

    return lambda: Commands(
        start=lambda inputs: STARTED,
        fill=fill,
        go=lambda: {"samples_ms": [milliseconds] * len(offsets), "cover": 2, "hidden": True},
        wall=lambda: 2 * milliseconds,
        seen=lambda: list(offsets),
        process=os.getpid,
    )


def on_a_slow_host(flushes: int) -> Callable[[], Commands]:
    """A process whose launches so many flushes hide; with fewer, the first call of each batch is left out."""
    commands, cover = steady(2.0)(), [1]

    def go() -> Mapping[str, Any]:
        tried = cover[0]
        hidden = tried >= flushes
        cover[0] = tried if hidden else 2 * tried
        samples = commands.go()["samples_ms"][0 if hidden else 1 :]
        return {"samples_ms": samples, "cover": tried, "hidden": hidden}

    return lambda: Commands(**{**vars(commands), "go": go})


def raising(at: str) -> Callable[[], Commands]:
    """A process that raises at the first such command."""
    commands = vars(steady(1.0)())
    kept, received = commands[at], []

    def first_time(**given: Any) -> Any:
        received.append(given)
        if len(received) == 1:
            raise ValueError("not today")
        return kept(**given)

    return lambda: Commands(**{**commands, at: first_time})


def dying() -> Commands:
    """A process that kills itself, or never answers."""
    return Commands(
        die=lambda: os.kill(os.getpid(), signal.SIGSEGV),
        leave=lambda: os._exit(3),
        hang=lambda: time.sleep(600),
    )


def lost(process: WorkerProcess, command: str, seconds: float = LIMIT_SECONDS) -> str:
    try:
        process.ask(command, seconds=seconds)
    except Lost as why:
        return str(why)
    return "answered"


def processes_of(**commands: Callable[[], Commands]) -> TimedProcesses:
    idle = start_process(lambda: Commands(go=lambda calls, cover: [0.001] * calls))
    coordinator = start_process(Commands)
    return TimedProcesses(
        {label: start_process(made) for label, made in commands.items()},
        idle,
        coordinator,
        LIMIT_SECONDS,
    )


def endings() -> dict[str, Any]:
    """How processes are lost."""
    found = {what: lost(start_process(dying), what) for what in ("die", "leave")}
    hanging = start_process(dying)
    found["hang"] = lost(hanging, "hang", seconds=0.2)
    found["alive after a time-out"] = hanging.alive
    unlucky = start_process(raising("go"))
    unlucky.ask("fill", seconds=LIMIT_SECONDS, offsets=[1])
    found["raise"] = lost(unlucky, "go")
    found["alive after an exception"] = unlucky.alive
    found["then"] = unlucky.ask("go", seconds=LIMIT_SECONDS)
    return found


def ended() -> dict[str, Any]:
    """A process that fails before the first size."""
    processes = processes_of(fine=steady(1.0), unlucky=raising("fill"))
    processes.all_alike("fill", offsets=[1])
    processes.end_failed()
    processes.readmit()
    found = {"running": list(processes.running), "lost": processes.lost}
    processes.end()
    return found


def rounds(folder: Path) -> dict[str, Any]:
    """Two steady processes and one that fails at first, over two sizes."""
    processes = processes_of(
        slow=steady(3.0), fast=steady(1.0), late=on_a_slow_host(8), unlucky=raising("start")
    )
    report = JobReport(folder, FolderChannel(folder))
    first = all_rounds(report, processes, ["inputs0"], {**SETTING, "round_seconds": 5.0})
    seen = {label: process.ask("seen", seconds=LIMIT_SECONDS) for label, process in processes.running.items()}
    why = dict(processes.lost)
    processes.readmit()
    second = all_rounds(report, processes, ["inputs0"], {**SETTING, "round_seconds": 0.0})
    found = {
        "processes": len({m.ask("process", seconds=LIMIT_SECONDS) for m in processes.running.values()}),
        "here": os.getpid() in {m.ask("process", seconds=LIMIT_SECONDS) for m in processes.running.values()},
        "samples": {label: record.samples_ms for label, record in first.records.items()},
        "walls": {label: record.wall_ms for label, record in first.records.items()},
        "outside": {label: len(first.outside_ms(label)) for label in first.records},
        "idle": {cover: len(times) for cover, times in first.idle_ms.items()},
        "batch": first.batch,
        "last": first.last,
        "seen": seen,
        "lost": why,
        "later": {label: len(record.samples_ms) for label, record in second.records.items()},
    }
    processes.end()
    return found


def nothing_left(folder: Path) -> dict[str, Any]:
    """One process, which fails at its first call."""
    processes = processes_of(unlucky=raising("start"))
    folder.mkdir()
    report = JobReport(folder, FolderChannel(folder))
    all_rounds(report, processes, ["inputs0"], {**SETTING, "round_seconds": 5.0})
    processes.end()
    lines = [json.loads(line) for line in (folder / MESSAGES).read_text().splitlines()]
    return {"lost": processes.lost, "said": [line["message"] for line in lines if "message" in line]}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {
        "endings": endings(),
        "ended": ended(),
        "rounds": rounds(folder),
        "none": nothing_left(folder / "none"),
    }
    print(json.dumps(found))
