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

import anyio

from pytorch_to_triton import places
from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.errors import MissingRequirement, Refusal
from pytorch_to_triton.inputs.declaration import parse_options, parse_points
from pytorch_to_triton.jobs.client import WorkerClient, open_client
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


def main(given: Sequence[str] | None = None) -> int:
    """Time what has no result yet, and write the table. The exit status: 3 where nothing can be timed."""
    parser = argparse.ArgumentParser(prog="reference_benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", default=["*"], help="patterns of rows, such as softmax-*")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"the results' folder; default: {RESULTS}")
    parser.add_argument("--deadline", type=float, help="start no row after so many seconds")
    parser.add_argument("--list", action="store_true", help="name the rows, and time nothing")
    options = parser.parse_args(given)
    chosen = [row for row in rows() if any(fnmatch.fnmatch(row.name, each) for each in options.only)]
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    try:
        anyio.run(time_missing, chosen, options.out, options.deadline)
    except MissingRequirement as refusal:
        print(refusal.message, refusal.hint, file=sys.stderr)
        return 3
    results = results_in(options.out, chosen)
    text = table_of(results)
    places.write_atomically(options.out / "table.md", text)
    places.write_atomically(options.out / "rows.csv", rows_csv(results))
    print(text)
    return 0


async def time_missing(chosen: Sequence[Row], out: Path, deadline: float | None) -> None:
    """Time the rows without a result one after the other; one worker imports what they need once.

    Raises MissingRequirement without a GPU.
    """
    began = time.monotonic()
    missing = [row for row in chosen if not result_file(out, row).exists()]
    if not missing:
        return
    async with open_client() as worker:
        runtime = await choose_runtime(worker, "cuda")
        for number, row in enumerate(missing, 1):
            spent = time.monotonic() - began
            if deadline is not None and spent > deadline:
                break
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


def results_in(out: Path, chosen: Sequence[Row]) -> list[tuple[Row, Benchmark]]:
    """Each row that was timed, with its result."""
    files = [(row, result_file(out, row)) for row in chosen]
    return [(row, Benchmark.model_validate_json(file.read_text())) for row, file in files if file.exists()]


if __name__ == "__main__":
    sys.exit(main())
