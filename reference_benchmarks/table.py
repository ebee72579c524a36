"""The results as a table in Markdown, with the geometric means that sum them up, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from pytorch_to_triton.schema.benchmark import EAGER, KERNEL, Benchmark
from pytorch_to_triton.schema.timing import Timing, TimingTable
from reference_benchmarks.rows import Row

HEAD = """\
| kernel | pass | size | ms | rate | of the limit | best other, ms | times as fast | against eager |
|---|---|---|---|---|---|---|---|---|"""
DASH = "–"
COLUMNS = (
    "kernel", "pass", "size", "ms", "best_other", "best_other_ms", "times_as_fast", "times_as_fast_as_eager",
)  # fmt: skip


def table_of(results: Sequence[tuple[Row, Benchmark]]) -> str:
    """One line a row; above 1 the kernel is ahead of the best of all others."""
    if not results:
        return "Nothing was timed.\n"
    lines = [f"{results[0][1].device}", "", HEAD]
    lines += [line_of(row, table) for row, result in results for table in result.tables]
    for passes in ("forward", "backward"):
        ratios = [ahead(t) for row, b in results if row.passes == passes for t in b.tables]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            mean = math.exp(sum(map(math.log, known)) / len(known))
            lines.append(
                f"\n{passes}: {mean:.2f} times as fast as the best other, geometric mean of {len(known)}."
            )
    return "\n".join(lines) + "\n"


def rows_csv(results: Sequence[tuple[Row, Benchmark]]) -> str:
    """The device in a comment, then a line for each size at which the kernel was timed beside another."""
    text = io.StringIO()
    text.write(f"# {results[0][1].device if results else 'nothing was timed'}\n")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for row, table in ((row, table) for row, result in results for table in result.tables):
        kernel, best = table.of(KERNEL), best_other(table)
        if kernel and best:
            other = (best.label.partition(":")[0], f"{best.median_ms:.4f}")
            times = (f"{kernel.median_ms:.4f}", *other, ratio(best, kernel), ratio(table.of(EAGER), kernel))
            lines.writerow((name_of(row).replace("`", ""), row.passes, size_of(table), *times))
    return text.getvalue()


def ratio(other: Timing | None, kernel: Timing) -> str:
    """How many times as fast as another the kernel is; empty without one."""
    return f"{other.median_ms / kernel.median_ms:.2f}" if other else ""


def line_of(row: Row, table: TimingTable) -> str:
    """The kernel beside the fastest of the others."""
    kernel, best = table.of(KERNEL), best_other(table)
    start = f"| {name_of(row)} | {row.passes} | {size_of(table)} |"
    if kernel is None:
        return f"{start} {table.failed.get(KERNEL, 'not timed')} |" + " |" * 5
    cells = (
        f"{kernel.median_ms:.4f}",
        rate_of(kernel, is_product=row.is_product),
        DASH if kernel.share_of_limit is None else f"{kernel.share_of_limit:.0%}",
        f"{best.label.partition(':')[0]} {best.median_ms:.4f}" if best else DASH,
        ratio(best, kernel) or DASH,
        ratio(table.of(EAGER), kernel) or DASH,
    )
    return f"{start} {' | '.join(cells)} |"


def name_of(row: Row) -> str:
    """The kernel, and what tells its rows from others of it."""
    return f"`{row.kernel}`, {row.form}" if row.form else f"`{row.kernel}`"


def size_of(table: TimingTable) -> str:
    """The dims, by name where they are many, and the dtype of the first tensor."""
    dims = table.dims
    sizes = [str(size) for size in dims.values()]
    named = (
        " x ".join(sizes) if len(dims) <= 3 else ", ".join(f"{name}={size}" for name, size in dims.items())
    )
    return " ".join([named, *list(table.dtypes.values())[:1]])


def best_other(table: TimingTable) -> Timing | None:
    """The fastest of all that is not the kernel."""
    others = [timing for timing in table.timings if timing.label != KERNEL]
    return min(others, key=lambda timing: timing.median_ms, default=None)


def ahead(table: TimingTable) -> float | None:
    """How many times as fast as the best other the kernel is."""
    kernel, best = table.of(KERNEL), best_other(table)
    return best.median_ms / kernel.median_ms if kernel and best else None


def rate_of(timing: Timing, *, is_product: bool) -> str:
    """What was moved or computed in a second."""
    if is_product and timing.tflops is not None:
        return f"{timing.tflops:.0f} TFLOP/s"
    return DASH if timing.gbytes_per_s is None else f"{timing.gbytes_per_s:.0f} GB/s"
