"""Real processes that are told what to do, without a GPU; prints what came of it as JSON.

Run in a process of its own: whoever forks must have one thread.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import triton

from pytorch_to_triton.worker.job_report import JobReport
from pytorch_to_triton.worker.timing.rounds import TimedProcesses, all_rounds
from pytorch_to_triton.worker.timing.workers import Lost, WorkerProcess, enlist

SETTING = {"samples": 300, "full": True}
STARTED = {"input_bytes": 8, "output_bytes": 8, "free_bytes": 1 << 30, "call_ms": 1.0, "cover": 2}
LIMIT_SECONDS = 20.0
assert triton  # as in every worker: who tells of a failure leaves its frames out


def honest(milliseconds: float) -> Callable[[], Mapping[str, Callable[..., Any]]]:
    """A member whose every call takes so long by its own clock."""
    offsets: list[int] = []

    def fill(**given: Any) -> None:
        offsets[:] = given["offsets"]

    return lambda: {
        "start": lambda draws: STARTED,
        "fill": fill,
        "go": lambda: [milliseconds] * len(offsets),
        "wall": lambda: 2 * milliseconds,
        "seen": lambda: list(offsets),
        "process": os.getpid,
    }


def raising(at: str) -> Callable[[], Mapping[str, Callable[..., Any]]]:
    """A member that raises when it is told that the first time."""
    commands = dict(honest(1.0)())
    kept, told = commands[at], []

    def first_time(**given: Any) -> Any:
        told.append(given)
        if len(told) == 1:
            raise ValueError("not today")
        return kept(**given)

    return lambda: {**commands, at: first_time}


def dying() -> Mapping[str, Callable[..., Any]]:
    """A member that kills itself, or never answers."""
    return {
        "die": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "leave": lambda: os._exit(3),
        "hang": lambda: time.sleep(600),
    }


def lost(member: WorkerProcess, what: str, seconds: float = LIMIT_SECONDS) -> str:
    try:
        member.ask(what, seconds=seconds)
    except Lost as why:
        return str(why)
    return "answered"


def crew_of(**members: Callable[[], Mapping[str, Callable[..., Any]]]) -> TimedProcesses:
    idle = enlist("idle", lambda: {"go": lambda calls, cover: [0.001] * calls})
    clerk = enlist("clerk", dict)
    return TimedProcesses(
        {label: enlist(label, made) for label, made in members.items()}, idle, clerk, LIMIT_SECONDS
    )


def endings() -> dict[str, Any]:
    """How members are lost."""
    found = {what: lost(enlist(what, dying), what) for what in ("die", "leave")}
    hanging = enlist("hang", dying)
    found["hang"] = lost(hanging, "hang", seconds=0.2)
    found["alive after a time-out"] = hanging.alive
    unlucky = enlist("unlucky", raising("go"))
    unlucky.ask("fill", seconds=LIMIT_SECONDS, offsets=[1])
    found["raise"] = lost(unlucky, "go")
    found["alive after an exception"] = unlucky.alive
    found["then"] = unlucky.ask("go", seconds=LIMIT_SECONDS)
    return found


def dismissed() -> dict[str, Any]:
    """Who fails before the first size."""
    crew = crew_of(fine=honest(1.0), unlucky=raising("fill"))
    crew.all_alike("fill", offsets=[1])
    crew.dismiss()
    crew.gather()
    told = {"members": list(crew.members), "lost": crew.lost}
    crew.end()
    return told


def rounds(folder: Path) -> dict[str, Any]:
    """Two honest members and one that fails at first, over two sizes."""
    crew = crew_of(slow=honest(3.0), fast=honest(1.0), unlucky=raising("start"))
    with JobReport(folder) as report:
        first = all_rounds(report, crew, ["draw0"], {**SETTING, "round_seconds": 5.0})
        seen = {label: member.ask("seen", seconds=LIMIT_SECONDS) for label, member in crew.members.items()}
        why = dict(crew.lost)
        crew.gather()
        second = all_rounds(report, crew, ["draw0"], {**SETTING, "round_seconds": 0.0})
    told = {
        "processes": len({m.ask("process", seconds=LIMIT_SECONDS) for m in crew.members.values()}),
        "here": os.getpid() in {m.ask("process", seconds=LIMIT_SECONDS) for m in crew.members.values()},
        "samples": {label: record.samples_ms for label, record in first.records.items()},
        "walls": {label: record.wall_ms for label, record in first.records.items()},
        "outside": {label: len(first.outside_ms(label)) for label in first.records},
        "batch": first.batch,
        "last": first.last,
        "seen": seen,
        "lost": why,
        "later": {label: len(record.samples_ms) for label, record in second.records.items()},
    }
    crew.end()
    return told


if __name__ == "__main__":
    print(json.dumps({"endings": endings(), "dismissed": dismissed(), "rounds": rounds(Path(sys.argv[1]))}))
