"""Draft, check and time real model code: `python -m realcode.run`, with the phases of kernelbench/.

`work` holds what drafts are improved on, `held_out` what they are judged by. A function with gradients is
two problems: the forward pass alone, and both passes together.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kernelbench.command import words
from kernelbench.problems import Problem, chosen
from kernelbench.run import phases_parser, run_problems, start_phases
from kernelbench.table import write_tables
from pytorch_to_triton.jobs.client import WorkerClient

HALVES = ("work", "held_out")
RESULTS = Path("benchmarks/realcode")
PHASES = ("draft", "check", "compile", "time")
"""Without `validate`, which would take minutes for each."""
HERE = Path(__file__).resolve().parent


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = phases_parser("realcode", __doc__, RESULTS)
    parser.add_argument("--half", default="work", choices=HALVES, help="default: work")
    parser.add_argument("--problems", default=("*",), type=words, help="patterns such as losses/*,*/backward")
    return parser.parse_args(given)


def problems_in(half: str) -> list[Problem]:
    """Every function of the half, `decoder/rotary`, and with its gradients, `decoder/rotary/backward`."""
    return [problem for file in sorted((HERE / half).glob("*.py")) for problem in problems_of(file)]


def problems_of(file: Path) -> Iterator[Problem]:
    for name, call in calls_of(file).items():
        key = f"{file.stem}/{name}"
        yield Problem(key, name, file, name, call)
        if call.get("GRADIENTS"):
            yield Problem(f"{key}/backward", f"{name}_backward", file, name, call, backward=True)


def calls_of(file: Path) -> Mapping[str, Any]:
    """What the file's CALLS says of each function: INPUTS, DIMS, and whether it has GRADIENTS."""
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    assigned = {ast.unparse(s.targets[0]): s.value for s in statements if isinstance(s, ast.Assign)}
    calls: Mapping[str, Any] = ast.literal_eval(assigned["CALLS"])
    return calls


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """The phases of one half. Raises a Refusal for what the machine lacks."""
    given.out = given.out / given.half
    problems = chosen(problems_in(given.half), (), given.problems)
    write = partial(write_tables, title=f"Real model code, {given.half}")
    return await run_problems(given, worker, problems, write, PHASES)


if __name__ == "__main__":
    sys.exit(start_phases(arguments(), run))
