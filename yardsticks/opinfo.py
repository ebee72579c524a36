"""Draft and check PyTorch's operators at their sample inputs: `python -m yardsticks.opinfo`.

Results are kept as they come. Run again, it goes on where it ended.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kernelbench.command import words
from kernelbench.problems import Problem, chosen, in_order
from kernelbench.run import phases_parser, run_problems, start_phases
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton_server.machine import choose_runtime
from yardsticks.outcomes import write_outcomes

RESULTS = Path("benchmarks/opinfo")
PHASES = ("draft", "check")
OPERATORS = str(Path(__file__).resolve().parent / "operators.py")
SECONDS = 600.0
"""Writing all problems takes one of them."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line. Inputs are small, and their values matter: drafts are checked at them."""
    parser = phases_parser("opinfo", __doc__, RESULTS)
    parser.add_argument("--operators", default=("*",), type=words, help="patterns such as softmax*,linalg_*")
    parser.add_argument("--samples", default=2, type=int, help="of each operator at most; default: 2")
    parser.set_defaults(small=False, ways="own")
    return parser.parse_args(given)


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """The phases of all operators. Raises a Refusal for what the machine lacks."""
    folder = given.out.resolve() / f"problems_{given.samples}"
    await write_problems(given, worker, folder)
    patterns = [f"{operator}/*" for operator in given.operators]
    problems = chosen(problems_in(folder), (), patterns)
    write = partial(write_outcomes, title="PyTorch's operators", unit=lambda key: key.partition("/")[0])
    return await run_problems(given, worker, problems, write, PHASES)


async def write_problems(given: argparse.Namespace, worker: WorkerClient, folder: Path) -> None:
    """Write what is missing there. Raises MissingRequirement where PyTorch's database cannot be read."""
    wanted = {"into": str(folder), "samples": given.samples, "patterns": given.operators}
    runtime = await choose_runtime(worker, given.device)
    outcome = await worker.ask(Job(kind=OPERATORS, arguments=wanted), runtime, seconds=SECONDS)
    if outcome.answer is None:
        why = outcome.failure.named if outcome.failure else outcome.detail
        raise MissingRequirement(
            f"PyTorch's operators cannot be listed: {why}", "Install what it names; PyTorch's tests need it."
        )
    print(f"{len(outcome.answer)} operators have no problem; {folder}/left_out.json says why.", flush=True)


def problems_in(folder: Path) -> list[Problem]:
    """The problems that the folder holds, `softmax/0` the first of an operator."""
    problems = [
        Problem(f"{file.parent.name}/{file.stem}", f"{file.parent.name}_{file.stem}", file)
        for file in folder.glob("*/*.py")
    ]
    return sorted(problems, key=lambda problem: in_order(problem.key))


if __name__ == "__main__":
    sys.exit(start_phases(arguments(), run))
