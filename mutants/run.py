"""Make mutants of right kernels, and see which of them `validate` refuses: `python -m mutants.run`.

Results are kept as they come. Run again, it goes on where it ended; what has changed is judged again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from kernelbench.command import deadline, parser_of, start, words
from mutants.bases import Base, drafted, functions, references
from mutants.judging import PHASE, Judging, judge, judge_base
from mutants.mutate import Mutant, digest_of, mutants_of, selected
from mutants.table import write_table
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.engine import in_lanes
from pytorch_to_triton.sweep.journal import Journal, Record, open_journal
from pytorch_to_triton_server.machine import choose_runtime

RESULTS = Path("benchmarks/mutants")
AT_A_TIME = 8
"""Mutants that share one reference: its truths are computed once for them."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = parser_of("mutants", __doc__, RESULTS)
    parser.add_argument("--bases", default=("*",), type=words, help="patterns such as softmax,*_draft")
    parser.add_argument("--operators", default=("*",), type=words, help="patterns such as mask_*")
    parser.add_argument("--most", default=1, type=int, help="of an operator in each function; 0: all")
    parser.add_argument("--sample", type=int, help="only so many, of all operators alike")
    parser.add_argument(
        "--share", default=(1, 1), type=share, help="2/3: of the kernels every third, from the second on"
    )
    parser.add_argument("--device", default="interpreter", choices=("auto", "cuda", "interpreter"))
    parser.add_argument("--jobs", default=os.cpu_count() or 1, type=int, help="mutants at once")
    parser.add_argument("--seed", default=7, type=int)
    parser.add_argument("--timeout", default=60.0, type=float, help="seconds for each call of a mutant")
    parser.add_argument("--seconds-per-mutant", default=1200.0, type=float)
    parser.add_argument("--list", action="store_true", help="name the mutants, and judge none")
    return parser.parse_args(given)


def share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """Judge the chosen mutants of which nothing is known yet; the exit status."""
    out = given.out.resolve()
    (out / "drafts").mkdir(parents=True, exist_ok=True)
    with open_journal(out) as journal:
        with tempfile.TemporaryDirectory() as folder, deadline(given.deadline):
            runtime = await choose_runtime(worker, given.device)
            bases = await bases_of(worker, runtime, given, out / "drafts")
            every = [m for base in bases for m in mutants_of(base.name, base.text)]
            number, count = given.share
            bases = bases[number - 1 :: count]
            names = {base.name for base in bases}
            chosen = selected(every, given.operators, given.most, given.sample)
            mutants = [m for m in chosen if m.base in names]
            if given.list:
                print("\n".join(f"{m.id}  {m.before} => {m.after}" for m in mutants))
                return 0
            judging = Judging(
                worker, runtime, Path(folder), given.seed, given.timeout, given.seconds_per_mutant
            )
            await MutantRun(judging, journal, given.jobs).judge(bases, mutants)
        print(f"{write_table(out, journal)} is written.")
    return 0


async def bases_of(
    worker: WorkerClient, runtime: Runtime, given: argparse.Namespace, folder: Path
) -> list[Base]:
    """The chosen kernels, by name; drafts are made afresh, into the folder."""
    bases = references(given.bases)

    async def add(function: tuple[str, Target]) -> None:
        bases.append(await drafted(worker, runtime, *function, folder))
        print(f"drafted {function[0]}", file=sys.stderr, flush=True)

    await in_lanes(list(functions(folder, given.bases).items()), given.jobs, add)
    return sorted(bases, key=lambda base: base.name)


@dataclass
class MutantRun:
    """Mutants being judged, several at once."""

    judging: Judging
    journal: Journal
    jobs: int
    left: int = 0
    began: float = field(default_factory=time.monotonic)

    async def judge(self, bases: Sequence[Base], mutants: Sequence[Mutant]) -> None:
        """Judge what is not known yet: first each kernel itself, which must pass."""
        waiting = [m for m in mutants if not self.is_known(m.key, m.digest)]
        of_base = {base: [m for m in waiting if m.base == base.name] for base in bases}
        needed = [base for base in bases if of_base[base]]
        self.left = len(waiting) + sum(not self.is_known(base.name, digest_of(base.text)) for base in needed)
        print(f"{len(mutants)} mutants, of which {len(waiting)} are to be judged", flush=True)
        limiter = anyio.CapacityLimiter(self.jobs)
        async with anyio.create_task_group() as group:
            for base in sorted(needed, key=lambda base: -len(of_base[base])):
                group.start_soon(self.judge_all, base, of_base[base], limiter)

    async def judge_all(self, base: Base, mutants: Sequence[Mutant], limiter: anyio.CapacityLimiter) -> None:
        """Judge a kernel, then its mutants, as many tasks at once as the limiter allows."""
        if not self.is_known(base.name, digest_of(base.text)):
            async with limiter:
                self.add(await judge_base(self.judging, base))
        async with anyio.create_task_group() as group:
            for start in range(0, len(mutants), AT_A_TIME):
                group.start_soon(self.judge_some, base, mutants[start : start + AT_A_TIME], limiter)

    async def judge_some(self, base: Base, mutants: Sequence[Mutant], limiter: anyio.CapacityLimiter) -> None:
        known = self.record_of(base.name)
        if known is not None and known["status"] == "passed":
            async with limiter:
                await judge(self.judging, base, known, mutants, self.add)

    def is_known(self, key: str, digest: str) -> bool:
        return self.journal.is_done(key, PHASE, self.judging.where, digest)

    def record_of(self, key: str) -> Record | None:
        return self.journal.of(key, PHASE, self.judging.where)

    def add(self, record: Record) -> None:
        self.journal.add(record)
        self.left -= 1
        seconds, what = time.monotonic() - self.began, record.get("id", record["item"])
        said = str(record.get("how") or record["why"])[:100]
        print(f"{seconds:7.1f} s  {record['status']:9}  {what} ({said})  {self.left} wait", flush=True)


if __name__ == "__main__":
    # Many processes side by side, each with small tensors.
    sys.exit(start(arguments(), run, {"OMP_NUM_THREADS": "1"}))
