"""Times every reference kernel beside its peers: `python -m reference_benchmarks.run`, on a GPU.

Each row is what `benchmark` measures, and its whole result is kept. Run again, it goes on where it ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelbench.command import deadline, parser_of, start
from pytorch_to_triton import places
from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.inputs.declaration import parse_options, parse_points
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.engine import Phase, do_phase, is_needed
from pytorch_to_triton.sweep.items import digest_of, text_of
from pytorch_to_triton.sweep.journal import Record, open_journal
from pytorch_to_triton_server.machine import choose_runtime
from reference_benchmarks.rows import Row, rows
from reference_benchmarks.table import rows_csv, table_of

RESULTS = Path("benchmarks/reference_kernels")
PEERS = Path(__file__).with_name("peers")
PACKAGES = {"liger": "liger_kernel", "flag_gems": "flag_gems"}
"""What each file of peers/ imports."""
TIME = "time"
SECONDS = 3600.0
"""For a row; each call in it has a limit of its own."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = parser_of("reference_benchmarks", __doc__, RESULTS)
    parser.add_argument("only", nargs="*", default=["*"], help="patterns of rows, such as softmax-*")
    parser.add_argument("--list", action="store_true", help="name the rows, and time nothing")
    return parser.parse_args(given)


async def run(given: argparse.Namespace, worker: WorkerClient) -> int:
    """Time what has no result yet, and write the table; the exit status. Raises a Refusal without a GPU."""
    chosen = [row for row in rows() if any(fnmatch.fnmatch(row.name, each) for each in given.only)]
    if given.list:
        print("\n".join(row.name for row in chosen))
        return 0
    out = given.out.resolve()
    with open_journal(out) as journal:
        if any(is_needed(timed(worker, None, out), row, journal, None) for row in chosen):
            runtime = await choose_runtime(worker, "cuda")
            with deadline(given.deadline):
                await do_phase(timed(worker, runtime, out), chosen, journal, None, said)
        records = [(row, journal.of(row.key, TIME, "device")) for row in chosen]
    known = [(row, record["benchmark"]) for row, record in records if record and "benchmark" in record]
    results = [(row, Benchmark.model_validate_json(text)) for row, text in known]
    text = table_of(results)
    places.write_atomically(out / "table.md", text)
    places.write_atomically(out / "rows.csv", rows_csv(results))
    print(text)
    return 0


def timed(worker: WorkerClient, runtime: Runtime | None, out: Path) -> Phase[Row]:
    """The only phase, one row at a time; a runtime is needed to do it."""

    async def work(row: Row) -> Record:
        assert runtime is not None
        result = await benchmark(worker, request_of(row, out), runtime)
        return {"status": "measured", "benchmark": result.model_dump_json()}

    return Phase(TIME, "device", 1, SECONDS, work, digest=lambda row: digest_of(row, text_of(kernel_of(row))))


async def said(record: Record, finished: int, count: int) -> None:
    why = f" ({record['why']} {record.get('hint', '')})" if "why" in record else ""
    print(f"{finished} of {count}: {record['item']}{why}", file=sys.stderr, flush=True)


def kernel_of(row: Row) -> Path:
    return places.shipped(f"reference_kernels/{row.kernel}.py")


def request_of(row: Row, out: Path) -> BenchmarkRequest:
    """What is asked of `benchmark` for a row."""
    return BenchmarkRequest(
        candidate=Target(path=kernel_of(row)),
        against=tuple(Target(path=PEERS / f"{peer}.py", name=row.kernel) for peer in installed(row.peers)),
        options=parse_options(row.inputs, ()),
        points=parse_points(row.sizes),
        baselines=row.baselines,
        passes=row.passes,
        into=out / row.name,
        force=True,
    )


def installed(peers: Sequence[str]) -> list[str]:
    """Those whose package can be imported."""
    return [peer for peer in peers if importlib.util.find_spec(PACKAGES[peer]) is not None]


if __name__ == "__main__":
    sys.exit(start(arguments(), run, {}))
