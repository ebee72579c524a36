"""Results and progress as a person reads them on a terminal."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from pytorch_to_triton.benchmark.flags import all_flags, flag_text
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.compiled import Inspection
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.documentation import DocsStatus, MissingEntry, PageExcerpt, SearchResult
from pytorch_to_triton.schema.finding import AuditReport, Finding
from pytorch_to_triton.schema.finished import FinishedConversion
from pytorch_to_triton.schema.session import ConversionSession, SessionList, Understanding
from pytorch_to_triton.schema.timing import Timing, TimingTable
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import CaseResult, Verdict
from pytorch_to_triton_server.inspection_tables import compiled_at, inspection_tables
from pytorch_to_triton_server.tables import table_of

_PLAIN_WIDTH = 120
_PLAIN_SECONDS = 2.0
"""At most one line of plain progress in this time."""


def show(result: Value) -> None:
    """Print a result on stdout: its tables, then what it means and what to do next."""
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, markup=False)
    if isinstance(result, AuditReport) and result.document:
        sys.stdout.buffer.write(result.document.encode())
        return
    if isinstance(result, PageExcerpt):
        console.print(result.text, soft_wrap=True)
    for table in tables_of(result):
        console.print(table)
    for line in closing_lines(result):
        console.print(line, soft_wrap=True)


def closing_lines(result: Value) -> Iterator[str]:
    """What the result means, and what to do next."""
    texts = result.model_dump(include={"summary", "next_step"})
    if isinstance(result, Benchmark):
        yield from (f"Red flag: {flag_text(*flag)}" for flag in all_flags(result.tables, result.flags))
    if isinstance(result, Inspection) and (at := compiled_at(result)):
        yield at
    if isinstance(result, AuditReport):
        yield from (f"{one.kind}: {one.summary}" for one in result.examined)
        yield from (f"Not read: {one.why}" for one in result.unread)
        yield from (
            f"Suppressed at {one.finding.file}:{one.finding.line}: {one.finding.rule}: {one.reason}"
            for one in result.suppressed
        )
    if isinstance(
        result, Verdict | Inspection | Benchmark | AuditReport | ConversionSession | FinishedConversion
    ):
        yield from (f"Note: {note}" for note in result.notes)
    if isinstance(result, FinishedConversion) and result.tests and result.tests.output:
        yield result.tests.output
    yield texts["summary"]
    yield texts["next_step"]
    if isinstance(result, Benchmark):
        yield from files_of(result)
    if isinstance(result, AuditReport) and result.written:
        yield f"Report: {result.written}"
    if isinstance(result, Inspection) and result.page:
        text = result.page
        yield f"{text.kind} of {text.kernel}, page {text.page} of {text.pages} (in full: {text.whole}):"
        yield text.text
    if isinstance(result, Verdict) and result.verdict != "passed":
        if result.smallest:
            yield f"Smallest case with this mistake: {result.smallest}"
        yield f"Run it again: {result.replay}"


def files_of(result: Benchmark) -> Iterator[str]:
    """What a benchmark has written."""
    yield from (f"Chart: {picture}" for picture in result.pictures)
    if result.frozen:
        yield f"Frozen kernel: {result.frozen}"
    if result.folder:
        yield f"Report: {result.folder / 'report.md'}"


def tables_of(result: Value) -> Iterator[Table]:
    """The details, as tables."""
    match result:
        case Verdict():
            yield case_table(result)
            if result.skipped:
                yield table_of(("not tested", "reason"), [(skip.what, skip.why) for skip in result.skipped])
        case Conversion():
            yield stage_table(result)
            for stage in result.stages:
                if stage.verdict.verdict != "passed":
                    yield case_table(stage.verdict)
            if result.timing:
                yield timing_table(result.timing)
        case ConversionSession():
            yield from session_tables(result)
        case SessionList() if result.sessions:
            rows = [(str(s.session), s.target, f"stage {s.stage}", str(s.attempts)) for s in result.sessions]
            yield table_of(("session", "target", "next", "attempts"), rows)
        case FinishedConversion():
            yield table_of(
                ("file", "lines", ""),
                [(str(one.path), str(one.lines or ""), one.there) for one in result.files],
            )
        case Benchmark():
            yield table_of(*brief_table(result))
        case Inspection():
            yield from inspection_tables(result)
        case AuditReport() if result.findings:
            yield finding_table(result)
        case SearchResult():
            yield hit_table(result)
            yield from missing_tables(result.missing)
        case DocsStatus():
            yield from missing_tables(result.missing)


def session_tables(session: ConversionSession) -> Iterator[Table]:
    """At the start what was understood; later every attempt, and the last one's conditions."""
    if not session.attempts:
        yield table_of(("understood", ""), list(understood_rows(session.understood)))
        return
    rows = [
        (
            str(one.number),
            f"stage {one.stage}" + (f" (again {one.restored})" if one.restored else ""),
            "opened" if one.opened else "shut",
            f"{one.median_ms:.4f}" if one.median_ms is not None else "",
            one.when,
        )
        for one in session.attempts
    ]
    yield table_of(("attempt", "gate", "outcome", "ms", "when (UTC)"), rows)
    last = session.attempts[-1]
    conditions = [(one.name, one.met, one.evidence, one.advice) for one in last.conditions]
    yield table_of((f"attempt {last.number} asks", "", "evidence", "what to try"), conditions)


def understood_rows(understood: Understanding) -> Iterator[tuple[str, str]]:
    """What is known of a target, a row a kind."""
    for name, lines in (
        ("inputs", understood.inputs),
        ("frozen", understood.frozen),
        ("holds where", understood.guards),
        ("computes", understood.steps),
        ("drafted", understood.kernels),
        ("stays in PyTorch", understood.calls),
        ("not drafted", (understood.no_draft,)),
        ("work", (understood.work,)),
        ("gradients", (understood.gradients,)),
        ("worth reading", understood.read),
    ):
        if text := "\n".join(line for line in lines if line):
            yield name, text


def case_table(verdict: Verdict) -> Table:
    """One row a case; errors in units of the rounding error that the problem allows."""
    rows = [(case.name, case.group, case.status, worst_error(case), case.why) for case in verdict.cases]
    return table_of(("case", "group", "outcome", "error / allowed", "reason"), rows)


def finding_table(report: AuditReport) -> Table:
    """One row a finding."""
    rows = [
        (
            severity_of(f),
            f"{f.file}:{f.line}\n{f.rule}",
            "\n".join(filter(None, (f.message, f.proof))),
            f.suggestion,
        )
        for f in report.findings
    ]
    return table_of(("severity", "where, rule", "what", "suggestion"), rows)


def severity_of(finding: Finding) -> str:
    """`high, measured`; `low, suspected` of what the source alone cannot prove."""
    known = "\nknown" if finding.known else ""
    return f"{finding.severity}\n{'suspected' if finding.suspected else finding.evidence}{known}"


def hit_table(result: SearchResult) -> Table:
    """One row a hit; fetched text is marked, since nobody has checked it."""
    rows = []
    for hit in result.hits:
        mark = "(fetched, unchecked) " if hit.untrusted else ""
        rows.append((f"{hit.page}\n{hit.section}".rstrip(), hit.applies_to, f"{mark}{hit.excerpt}"))
    return table_of(("page, section", "about", "excerpt"), rows)


def missing_tables(missing: Sequence[MissingEntry]) -> Iterator[Table]:
    """One row for each thing that is missing."""
    if missing:
        yield table_of(("missing", "what to do"), [(entry.what, entry.fix) for entry in missing])


def worst_error(case: CaseResult) -> str:
    """The output that comes closest to its limit, or passes it by the most."""
    ratios = [(o.candidate_error / o.allowed_error, o) for o in case.outputs if o.allowed_error > 0]
    if not ratios:
        return ""
    ratio, worst = max(ratios, key=lambda pair: pair[0])
    if ratio <= 1 and any(output.failing for output in case.outputs):
        return f"{sum(output.failing for output in case.outputs)} not finite"
    return f"{worst.candidate_error:.3g} / {worst.allowed_error:.3g}"


def stage_table(conversion: Conversion) -> Table:
    """One row a stage."""
    rows = []
    for stage in conversion.stages:
        cases = stage.verdict.cases
        passed = sum(case.status == "passed" for case in cases)
        outcome = "passed" if stage.passed else "failed"
        name, kernels = f"{stage.stage} {stage.name}", ", ".join(stage.kernels)
        rows.append((name, outcome, f"{passed} of {len(cases)}", stage.speed, kernels, stage.file.name))
    return table_of(("stage", "outcome", "cases passed", "speed vs previous", "kernels", "file"), rows)


def rate_of(timing: Timing) -> str:
    return "not measured" if timing.gbytes_per_s is None else f"{timing.gbytes_per_s:.0f}"


def timing_table(timing: TimingTable) -> Table:
    """One row a callable."""
    rows = [
        (t.label, f"{t.median_ms:.4f}", f"{t.low_ms:.4f} to {t.high_ms:.4f}", rate_of(t))
        for t in timing.timings
    ]
    return table_of((timing.device, "median ms", "95 % interval", "GB/s"), rows)


@contextmanager
def progress_on_stderr() -> Iterator[ProgressListener]:
    """A bar if stderr is a terminal, else a plain line now and then."""
    if not sys.stderr.isatty():
        yield PlainProgress()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, progress.add_task("starting the worker", total=None))


class PlainProgress:
    """A ProgressListener that writes lines."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    async def progress(self, done: float, total: float | None, message: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PLAIN_SECONDS
            count = f" ({done:g} of {total:g})" if total else ""
            print(f"{message}{count}", file=sys.stderr, flush=True)

    async def item(self, result: dict[str, Any]) -> None:
        """Results are shown at the end."""


class Bar:
    """A ProgressListener that moves a bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self._progress.update(self._task, completed=done, total=total, description=message)

    async def item(self, result: dict[str, Any]) -> None:
        """Results are shown at the end."""
