"""Draft, check, validate and time KernelBench's problems: `python -m kernelbench.run FOLDER`.

Results are kept as they come. Run again, it goes on where it ended, be it by a crash, a time limit or Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from kernelbench.command import Report, Run, deadline, parser_of, start, words
from kernelbench.phases import DEVICE_ONLY, MACHINE, PHASES, Setting, imports_of_timings, measure_machine
from kernelbench.problems import Problem, chosen, problems_in
from kernelbench.table import write_tables
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.sweep.drafting import WaysDrafted
from pytorch_to_triton.sweep.engine import Phase, do_phase
from pytorch_to_triton.sweep.journal import Journal, Record, open_journal
from pytorch_to_triton_server.machine import choose_runtime

RESULTS = Path("benchmarks/kernelbench")
IMPORTED_AHEAD = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""The fork server imports torch.compile: no pool of processes may start with it."""
CACHES = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
"""Folders of the results in which compiled code is kept from phase to phase."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = phases_parser("kernelbench", __doc__, RESULTS)
    parser.add_argument("folder", type=Path, help="a checkout of KernelBench")
    parser.add_argument("--levels", default="1,2", type=words, help="default: 1,2")
    parser.add_argument("--problems", default=(), type=words, help="patterns such as 1/19,2/*, not levels")
    return parser.parse_args(given)


def phases_parser(name: str, about: str | None, results: Path) -> argparse.ArgumentParser:
    """How problems are treated. `phase` holds the phases in their order; `all` is left to the machine."""
    parser = parser_of(name, about, results)
    parser.add_argument("--phase", default=(), type=phases, help=f"of {', '.join(PHASES)}; or all")
    parser.add_argument(
        "--small", action=argparse.BooleanOptionalAction, help="small sizes; default: without a GPU"
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "interpreter"))
    parser.add_argument("--jobs", default=os.cpu_count() or 1, type=int, help="problems at once on the CPU")
    parser.add_argument("--device-jobs", default=4, type=int, help="on the GPU; one is timed at a time")
    parser.add_argument("--seconds-per-problem", default=120.0, type=float, help="for each phase")
    parser.add_argument(
        "--ways", default="all", choices=get_args(WaysDrafted), help="who computes convolutions and products"
    )
    parser.add_argument(
        "--max-autotune",
        default=True,
        action=argparse.BooleanOptionalAction,
        help="time torch.compile's, too, where there is a product: most of what compiling takes",
    )
    parser.add_argument("--stage", default=3, type=int, choices=(1, 2, 3))
    parser.add_argument(
        "--again", nargs="?", const="all", choices=("all", "failed"), help="do what is done, or what failed"
    )
    return parser


def phases(text: str) -> tuple[str, ...]:
    named = words(text)
    if unknown := set(named) - {*PHASES, "all"}:
        raise argparse.ArgumentTypeError(f"no phase is called {', '.join(sorted(unknown))}")
    return () if "all" in named else tuple(phase for phase in PHASES if phase in named)


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """The phases of KernelBench's problems. Raises a Refusal for what the machine lacks."""
    problems = chosen(problems_in(given.folder), given.levels, given.problems)
    return await run_problems(given, worker, problems, partial(write_tables, title="KernelBench"))


async def run_problems(
    given: argparse.Namespace,
    worker: WorkerClient,
    problems: Sequence[Problem],
    write: Report,
    usual: Sequence[str] = tuple(PHASES),
) -> int:
    """Do the phases one after the other; the exit status. Raises a Refusal for what the machine lacks."""
    if not problems:
        print("No problem has such a level or name.", file=sys.stderr)
        return 2
    out = given.out.resolve()
    with open_journal(out) as journal:
        with deadline(given.deadline):
            await do_phases(given, worker, problems, usual, journal)
        print(f"{write(out, journal)} is written.")
    return 0


async def do_phases(
    given: argparse.Namespace,
    worker: WorkerClient,
    problems: Sequence[Problem],
    usual: Sequence[str],
    journal: Journal,
) -> None:
    """Do the phases that are named, or the usual ones that can be done here, one after the other."""
    runtime = await choose_runtime(worker, given.device)
    setting = Setting(
        worker,
        runtime,
        journal,
        given.out.resolve(),
        given.stage,
        small=runtime.interpreter if given.small is None else given.small,
        seconds=given.seconds_per_problem,
        ways=given.ways,
        max_autotune=given.max_autotune,
    )
    possible = [phase for phase in usual if phase not in DEVICE_ONLY or not runtime.interpreter]
    for phase in given.phase or possible:
        if phase in DEVICE_ONLY:
            setting = await on_measured_machine(setting)
        await do_phase(phase_of(setting, given, phase), problems, journal, given.again, said)


async def on_measured_machine(setting: Setting) -> Setting:
    """The setting with what timings import, once its machine is measured.

    Raises MissingRequirement where nothing can be timed.
    """
    if setting.runtime.interpreter:
        raise MissingRequirement("Timing needs a GPU.", "Leave out the phases compile and time.")
    if setting.needs:
        return setting
    known = setting.journal.of(MACHINE, "machine", setting.where("machine")) or {}
    imports = tuple(known.get("imports", ())) or await imports_of_timings(setting)
    # A device may not be usable in what is forked from a process that has imported some of them.
    for ahead in (replace(setting, needs=imports), setting):
        record = await measure_machine(ahead)
        if record["status"] == "measured":
            setting.journal.add(record)
            return ahead
    raise MissingRequirement(f"The GPU cannot be measured: {record['why']}.", "See whether torch can use it.")


def phase_of(setting: Setting, given: argparse.Namespace, name: str) -> Phase[Problem]:
    return Phase(
        name=name,
        where=setting.where(name),
        lanes=lanes(setting, given, name),
        seconds=setting.seconds,
        work=partial(PHASES[name], setting),
        digest=partial(setting.digest, name),
    )


def lanes(setting: Setting, given: argparse.Namespace, phase: str) -> int:
    """How many problems are dealt with at once."""
    if phase == "time":
        return 1
    on_device = phase != "draft" and not setting.runtime.interpreter
    count: int = given.device_jobs if on_device else given.jobs
    return max(1, count)


async def said(record: Record, finished: int, count: int) -> None:
    """A line for each record as it comes."""
    print(f"{finished:5} of {count}  {line_of(record)}", flush=True)


def line_of(record: Record) -> str:
    """A record in a line: `validate  1/19  19_ReLU: passed`."""
    refusal = record.get("refusal") or {}
    said = str(record.get("why") or refusal.get("message") or "").partition("\n")[0]
    results = [f"{len(record['ways'])} ways"] if record.get("ways") else []
    results += [f"{name} {shown(what)}" for name, what in (record.get("implementations") or {}).items()]
    details = "; ".join([*results, *([said[:150]] if said else []), f"{record['seconds']:.1f} s"])
    return f"{record['phase']:8}  {record['item']:>6}  {record['name']}: {record['status']} ({details})"


def shown(implementation: Record) -> str:
    if "median_ms" in implementation:
        return f"{implementation['median_ms']:.4f} ms"
    return "failed" if "error" in implementation else f"compiled in {implementation['first_seconds']:.1f} s"


def start_phases(given: argparse.Namespace, run: Run) -> int:
    """The exit status of `start`; the phases share the caches of compiled code."""
    caches = {name: str(given.out.resolve() / "caches" / folder) for name, folder in CACHES.items()}
    return start(given, run, {**IMPORTED_AHEAD, **caches})


if __name__ == "__main__":
    sys.exit(start_phases(arguments(), run))
