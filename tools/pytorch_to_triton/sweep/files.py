"""The files of a sweep's results: the report for a person, the page, and a line or row an item."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.sweep.outcome import STATES, ItemResult
from pytorch_to_triton.sweep.page import page_of
from pytorch_to_triton.sweep.phases import PhaseName
from pytorch_to_triton.sweep.report import (
    GOOD,
    RESULTS,
    TIMES,
    Speed,
    SweepComparison,
    SweepReport,
    compared,
    line_of,
    report_of,
)


def write_results(
    out: Path, phases: Sequence[PhaseName], where: str, results: Sequence[ItemResult], against: Path | None
) -> SweepReport:
    """Write the report and the results into the folder. Raises BadInput for an `against` without results."""
    report = report_of(phases, where, results, compared(results, against) if against else None)
    write_atomically(out / RESULTS, "".join(f"{result.model_dump_json()}\n" for result in results))
    write_atomically(out / "report.md", markdown(report, results))
    write_atomically(out / "sweep.html", page_of(report, results))
    files = [out / "report.md", out / "sweep.html", out / RESULTS, *write_parquet(out, results)]
    return report.model_copy(update={"files": tuple(files)})


def write_parquet(out: Path, results: Sequence[ItemResult]) -> list[Path]:
    """`results.parquet` with a row an item, where pyarrow is installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return []
    rows = [json.loads(result.model_dump_json(exclude={"sizes", "statuses"})) for result in results]
    file = out / "results.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return [file]


def markdown(report: SweepReport, results: Sequence[ItemResult]) -> str:
    """The report for a person: the states, the speeds, what is slow, and why what is not right."""
    lines = ["# Sweep", "", report.summary, "", f"{report.where}; phases: {', '.join(report.phases)}.", ""]
    lines += ["| state | what it says | items |", "|---|---|--:|"]
    lines += [f"| {state} | {STATES[state]} | {count} |" for state, count in report.states.items()]
    if report.cheats:
        lines += ["", "Refused as cheating: " + named(report.cheats)]
    if report.speeds:
        ps = " | ".join(f"fast_{p:g}" for p in TIMES)
        lines += ["", f"| beside | timed | geometric mean | {ps} |", "|---|--:|--:|" + "--:|" * len(TIMES)]
        lines += [speed_line(speed) for speed in report.speeds]
    if report.share_of_limit is not None:
        lines += ["", f"Half of the right ones reach at least {report.share_of_limit:.0%} of the limit."]
    if report.slowest:
        lines += ["", "Furthest behind: " + ", ".join(report.slowest)]
    lines += comparison_lines(report.comparison)
    if bad := [result for result in results if result.state not in GOOD]:
        lines += ["", "## What is not right", ""]
        lines += [f"- {line_of(result)}" for result in bad]
    return "\n".join(lines) + "\n"


def speed_line(speed: Speed) -> str:
    shares = " | ".join(f"{share:.0%}" for share in speed.fast.values())
    return f"| {speed.over} | {speed.timed} | {speed.geometric_mean:.2f} | {shares} |"


def comparison_lines(comparison: SweepComparison | None) -> list[str]:
    if comparison is None:
        return []
    lines = ["", f"## Beside {comparison.folder}", "", f"{comparison.items} items are in both."]
    if comparison.speed is not None:
        lines.append(f"Kernels are {comparison.speed:.2f} times as fast (geometric mean).")
    for title, changes in (("Worse", comparison.worse), ("Better", comparison.better)):
        lines += ["", f"{title}: {len(changes)}", ""] if changes else []
        lines += [f"- {change.key}: {change.before} → {change.after}" for change in changes]
    return lines


def named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.items())
