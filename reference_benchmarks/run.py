"""Times every reference kernel beside its peers: `python -m reference_benchmarks.run`, on a GPU.

Each row is what `benchmark` measures, and its whole result is kept. Run again, it goes on where it ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kernelbench.engine import deadline, parser_of, start
from pytorch_to_triton import places
from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.inputs.declaration import parse_options, parse_points
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton_server.machine import choose_runtime
from reference_benchmarks.rows import Row, rows
from reference_benchmarks.table import rows_csv, table_of

RESULTS = Path("benchmarks/reference_kernels")
PEERS = Path(__file__).with_name("peers")
PACKAGES = {"liger": "liger_kernel", "flag_gems": "flag_gems"}
"""What each file of peers/ imports."""


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
    missing = [row for row in chosen if not result_file(given.out, row).exists()]
    if missing:
        runtime = await choose_runtime(worker, "cuda")
        with deadline(given.deadline):
            await time_all(worker, runtime, missing, given.out)
    files = [(row, result_file(given.out, row)) for row in chosen]
    results = [(row, Benchmark.model_validate_json(f.read_text())) for row, f in files if f.exists()]
    text = table_of(results)
    places.write_atomically(given.out / "table.md", text)
    places.write_atomically(given.out / "rows.csv", rows_csv(results))
    print(text)
    return 0


async def time_all(worker: WorkerClient, runtime: Runtime, missing: Sequence[Row], out: Path) -> None:
    """Time the rows one after the other; one worker imports what they need once."""
    began = time.monotonic()
    for number, row in enumerate(missing, 1):
        spent = time.monotonic() - began
        print(f"{spent:6.1f} s  {number} of {len(missing)}: {row.name}", file=sys.stderr, flush=True)
        if why := await keep(worker, runtime, row, out):
            print(f"  {why}", file=sys.stderr, flush=True)


async def keep(worker: WorkerClient, runtime: Runtime, row: Row, out: Path) -> str:
    """Time one row and keep its result. Returns why there is none, or nothing."""
    try:
        result = await benchmark(worker, request_of(row, out), runtime)
    except Refusal as refusal:
        return f"{refusal.message} {refusal.hint}"
    places.write_atomically(result_file(out, row), result.model_dump_json())
    return ""


def request_of(row: Row, out: Path) -> BenchmarkRequest:
    """What is asked of `benchmark` for a row."""
    return BenchmarkRequest(
        candidate=Target(path=places.shipped(f"reference_kernels/{row.kernel}.py")),
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


def result_file(out: Path, row: Row) -> Path:
    return out / f"{row.name}.json"


if __name__ == "__main__":
    sys.exit(start(arguments(), run, {}))
