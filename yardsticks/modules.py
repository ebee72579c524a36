"""Draft and check modules of public projects: `python -m yardsticks.modules FOLDER`.

FOLDER is a checkout of jansel/pytorch-jit-paritybench; nothing of it is kept here. Results are kept as they
come. Run again, it goes on where it ended.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from kernelbench.command import words
from kernelbench.problems import chosen, problems_in
from kernelbench.run import phases_parser, run_problems, start_phases
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton_server.machine import choose_runtime
from yardsticks.extraction import cases_of, problem_of
from yardsticks.outcomes import write_outcomes

RESULTS = Path("benchmarks/modules")
PHASES = ("draft", "check")
COMPUTING = str(Path(__file__).resolve().parent / "computing.py")
SECONDS = 8.0
"""A module that takes longer on the CPU is no problem."""
TRIED = 6
"""Modules of one project that are tried until one is a problem."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = phases_parser("modules", __doc__, RESULTS)
    parser.add_argument("folder", type=Path, help="a checkout of jansel/pytorch-jit-paritybench")
    parser.add_argument("--seeds", default=("1",), type=words, help="of the choice of modules; default: 1")
    parser.add_argument("--count", default=200, type=int, help="modules of each seed; default: 200")
    parser.add_argument("--problems", default=(), type=words, help="patterns such as 1/19,2/*, not seeds")
    parser.set_defaults(ways="own")
    return parser.parse_args(given)


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """The phases of the modules of all seeds. Raises a Refusal for what the machine lacks."""
    into = given.out.resolve() / f"problems_{given.count}"
    runtime = await choose_runtime(worker, given.device)
    for seed in given.seeds:
        if not (level := into / f"level{seed}").exists():
            await extract(worker, runtime, files_in(given.folder, seed), level, given.count)
    problems = chosen(problems_in(into), given.seeds, given.problems)
    write = partial(write_outcomes, title="Modules")
    return await run_problems(given, worker, problems, write, PHASES)


def files_in(folder: Path, seed: str) -> list[Path]:
    """The checkout's files of modules in the seed's order. Raises FileNotFoundError where there are none."""
    files = sorted((folder / "generated").glob("test_*.py"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no generated/test_*.py as pytorch-jit-paritybench does")
    random.Random(seed).shuffle(files)
    return files


async def extract(
    worker: WorkerClient, runtime: Runtime, files: Sequence[Path], level: Path, count: int
) -> None:
    """Write one problem of each file into the folder until it holds so many. It appears when it is whole."""
    part = level.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    kept = 0
    for file in files:
        if kept == count:
            break
        for name, text in candidates(file):
            problem = part / f"{kept + 1}_{name}.py"
            problem.write_text(text, encoding="utf-8")
            job = Job(kind=COMPUTING, arguments={"path": str(problem)})
            if (await worker.ask(job, runtime, seconds=SECONDS)).answer == {"why": ""}:
                kept += 1
                print(f"{level.name}: {kept} of {count}, {problem.name}", flush=True)
                break
            problem.unlink()
    part.rename(level)


def candidates(file: Path) -> Iterator[tuple[str, str]]:
    """Some modules of a file, in an order of its own, as problems: the class and the text."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except SyntaxError:
        return
    cases = list(cases_of(tree))
    random.Random(file.name).shuffle(cases)
    for case in cases[:TRIED]:
        if text := problem_of(file.name, tree, case):
            yield case.cls, text


if __name__ == "__main__":
    sys.exit(start_phases(arguments(), run))
