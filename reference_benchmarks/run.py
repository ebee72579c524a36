"""Times every reference kernel beside its peers: `python -m reference_benchmarks.run`, on a GPU.

Each row is a call of `benchmark`, whose whole result is kept. Run again, it goes on where it ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_to_triton import places
from pytorch_to_triton.command_line import program
from pytorch_to_triton.schema.benchmark import Benchmark
from reference_benchmarks.rows import Row, rows
from reference_benchmarks.table import table_of

RESULTS = Path("benchmarks/reference_kernels")
PEERS = Path(__file__).with_name("peers")
PACKAGES = {"liger": "liger_kernel", "flag_gems": "flag_gems"}
"""What each file of peers/ imports."""


def main(given: Sequence[str] | None = None) -> int:
    """Time what has no result yet, and write the table."""
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
    began = time.monotonic()
    for number, row in enumerate(chosen, 1):
        if options.deadline and time.monotonic() - began > options.deadline:
            break
        if not result_file(options.out, row).exists():
            print(f"{number} of {len(chosen)}: {row.name}", file=sys.stderr, flush=True)
            keep(options.out, row)
    text = table_of(results_in(options.out, chosen))
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def command_of(row: Row, out: Path) -> list[str]:
    """The call of `benchmark` that times a row."""
    words = [*program(), "benchmark", str(places.shipped(f"reference_kernels/{row.kernel}.py"))]
    for text in row.inputs:
        words += ["--input", text]
    for name, size in row.dims:
        words += ["--dim", f"{name}={size}"]
    for peer in installed(row.peers):
        words += ["--against", f"{PEERS / peer}.py:{row.kernel}"]
    for baseline in ("eager", "compile", *["max-autotune"] * row.is_product):
        words += ["--baseline", baseline]
    return [*words, "--passes", row.passes, "--into", str(out / row.name), "--force", "--json"]


def installed(peers: Sequence[str]) -> list[str]:
    """Those whose package can be imported."""
    return [peer for peer in peers if importlib.util.find_spec(PACKAGES[peer]) is not None]


def keep(out: Path, row: Row) -> None:
    """Time one row and keep its result, or what was said in its place."""
    done = subprocess.run(command_of(row, out), capture_output=True, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"error": {"message": done.stderr[-2000:]}}
    if "error" in answer:
        print(f"  {answer['error']['message']}", file=sys.stderr, flush=True)
        return
    places.write_atomically(result_file(out, row), json.dumps(answer))


def result_file(out: Path, row: Row) -> Path:
    return out / f"{row.name}.json"


def results_in(out: Path, chosen: Sequence[Row]) -> list[tuple[Row, Benchmark]]:
    """Each row that was timed, with its result."""
    files = [(row, result_file(out, row)) for row in chosen]
    return [(row, Benchmark.model_validate_json(file.read_text())) for row, file in files if file.exists()]


if __name__ == "__main__":
    sys.exit(main())
