"""Results as a person reads them on a terminal."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from pytorch_to_triton.benchmark.flags import all_flags, flag_text
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.command_line import typed
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.compiled import Inspection
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.documentation import DocsStatus, MissingEntry, PageExcerpt, SearchResult
from pytorch_to_triton.schema.finding import AuditReport, Finding
from pytorch_to_triton.schema.finished import FinishedConversion
from pytorch_to_triton.schema.session import ConversionSession, SessionList, SessionStep, Understanding
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.conclusion import skipped_text
from pytorch_to_triton_server.inspection_tables import compiled_at, inspection_tables
from pytorch_to_triton_server.tables import TerminalTable, console_on_stdout, shown_path
from pytorch_to_triton_server.verdict_tables import every_case, verdict_tables


def show(result: Value, *, each_case: bool = False) -> None:
    """Print a result on stdout: its tables, then what it means and what to do next.

    A verdict comes before its tables, unless these list `each_case` of it.
    """
    console = console_on_stdout()
    if isinstance(result, AuditReport) and result.document:
        sys.stdout.buffer.write(result.document.encode())
        return
    if isinstance(result, PageExcerpt):
        console.print(result.text, soft_wrap=True)
    if isinstance(result, Verdict) and not each_case:
        print_lines(console, conclusion_lines(result))
        print_tables(console, tables_of(result))
        print_lines(console, notes_of(result))
        return
    print_tables(console, every_case(result) if isinstance(result, Verdict) else tables_of(result))
    print_lines(console, closing_lines(result))


def print_tables(console: Console, tables: Iterable[TerminalTable]) -> None:
    """One below the other."""
    for table in tables:
        console.print(table)


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """A command is to be copied, and a program reads lines: neither is broken."""
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal or typed() in line)


def closing_lines(result: Value) -> Iterator[str]:
    """What the result means, and what to do next."""
    if isinstance(result, Benchmark):
        yield from (f"Red flag: {flag_text(*flag)}" for flag in all_flags(result.tables, result.flags))
    if isinstance(result, Inspection) and (at := compiled_at(result)):
        yield at
    if isinstance(result, AuditReport):
        yield from (f"{entry.kind}: {entry.summary}" for entry in result.examined)
        yield from (f"Not read: {entry.why}" for entry in result.unread)
        yield from (
            f"Suppressed at {entry.finding.file}:{entry.finding.line}: {entry.finding.rule}: {entry.reason}"
            for entry in result.suppressed
        )
    yield from notes_of(result)
    if isinstance(result, FinishedConversion) and result.tests and result.tests.output:
        yield result.tests.output
    yield from conclusion_lines(result)
    if isinstance(result, Benchmark):
        yield from (f"Chart: {picture}" for picture in result.pictures)
        if result.frozen:
            yield f"Frozen kernel: {result.frozen}"
        if result.folder:
            yield f"Report: {result.folder / 'report.md'}"
    if isinstance(result, AuditReport) and result.written:
        yield f"Report: {result.written}"
    if isinstance(result, Inspection) and result.page:
        text = result.page
        yield f"{text.kind} of {text.kernel}, page {text.page} of {text.pages} (in full: {text.whole}):"
        yield text.text


def notes_of(result: Value) -> Iterator[str]:
    """What should be known beside the result."""
    yield from (f"Note: {note}" for note in getattr(result, "notes", ()))


def conclusion_lines(result: Value) -> Iterator[str]:
    """The summary and the next step; of a verdict that is no pass, how to see the mistake again."""
    yield from result.model_dump(include={"summary", "next_step"}).values()
    if isinstance(result, Verdict) and result.verdict != "passed":
        if result.smallest:
            yield f"Smallest case with this mistake: {result.smallest}"
        yield f"Run it again: {result.replay}"


def tables_of(result: Value) -> Iterator[TerminalTable]:
    """The details, as tables."""
    match result:
        case Verdict():
            yield from verdict_tables(result)
        case Conversion():
            yield stage_table(result)
            for stage in result.stages:
                if stage.verdict.verdict != "passed":
                    yield from verdict_tables(stage.verdict)
            yield from (timing_table(sizes.timing) for sizes in result.at if sizes.timing)
        case ConversionSession():
            yield from session_tables(result)
        case SessionStep() if result.unmet:
            unmet = [(c.name, c.evidence, c.advice) for c in result.unmet]
            yield TerminalTable(("not met", "evidence", "what to try"), unmet)
        case SessionList() if result.sessions:
            rows = [(str(s.session), s.target, f"stage {s.stage}", str(s.attempts)) for s in result.sessions]
            yield TerminalTable(("session", "target", "next", "attempts"), rows)
        case FinishedConversion():
            yield TerminalTable(
                ("file", "lines", ""),
                [(str(file.path), str(file.lines or ""), file.there) for file in result.files],
            )
        case Benchmark():
            yield TerminalTable(*brief_table(result))
        case Inspection():
            yield from inspection_tables(result)
        case AuditReport() if result.findings:
            yield finding_table(result)
        case SearchResult():
            yield hit_table(result)
            yield from missing_tables(result.missing)
        case DocsStatus():
            yield from missing_tables(result.missing)


def session_tables(session: ConversionSession) -> Iterator[TerminalTable]:
    """At the start what was understood; later every attempt, and the last one's conditions."""
    if not session.attempts:
        yield TerminalTable(("understood", ""), list(understood_rows(session.understood)))
        return
    rows = [
        (
            str(attempt.number),
            f"stage {attempt.stage}" + (f" (again {attempt.restored})" if attempt.restored else ""),
            "opened" if attempt.opened else "shut",
            ", ".join(f"{timed.median_ms:.4f}" for timed in attempt.times),
            attempt.when,
        )
        for attempt in session.attempts
    ]
    yield TerminalTable(("attempt", "gate", "outcome", "ms", "when (UTC)"), rows)
    last = session.attempts[-1]
    conditions = [
        (condition.name, condition.met, condition.evidence, condition.advice) for condition in last.conditions
    ]
    yield TerminalTable((f"attempt {last.number} asks", "", "evidence", "what to try"), conditions)


def understood_rows(understood: Understanding) -> Iterator[tuple[str, str]]:
    """What is known of a target, a row a kind."""
    for name, lines in (
        ("inputs", understood.inputs),
        ("fixed", understood.frozen),
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


def finding_table(report: AuditReport) -> TerminalTable:
    """One row a finding."""
    rows = [
        (
            severity_of(f),
            f"{shown_path(f.file)}:{f.line}\n{f.rule}",
            "\n".join(filter(None, (f.message, f.proof))),
            f.suggestion,
        )
        for f in report.findings
    ]
    return TerminalTable(("severity", "where, rule", "what", "suggestion"), rows)


def severity_of(finding: Finding) -> str:
    """`high, measured`; `low, suspected` of what the source alone cannot prove."""
    known = "\nknown" if finding.known else ""
    return f"{finding.severity}\n{'suspected' if finding.suspected else finding.evidence}{known}"


def hit_table(result: SearchResult) -> TerminalTable:
    """One row a hit; fetched text is marked, since nobody has checked it."""
    rows = []
    for hit in result.hits:
        mark = "(fetched, unchecked) " if hit.untrusted else ""
        rows.append((f"{hit.name}\n{hit.section}".rstrip(), hit.applies_to, f"{mark}{hit.excerpt}"))
    return TerminalTable(("page, section", "about", "excerpt"), rows)


def missing_tables(missing: Sequence[MissingEntry]) -> Iterator[TerminalTable]:
    """One row for each thing that is missing."""
    if missing:
        yield TerminalTable(("missing", "what to do"), [(entry.what, entry.fix) for entry in missing])


def stage_table(conversion: Conversion) -> TerminalTable:
    """One row a stage."""
    rows = []
    for stage in conversion.stages:
        outcome = "passed" if stage.passed else "failed"
        name, kernels = f"{stage.stage} {stage.name}", ", ".join(stage.kernels)
        cases = passed_of_all(stage.verdict)
        speed = stage.speed if stage is not conversion.stages[0] else ""
        rows.append((name, outcome, cases, speed, kernels, stage.file.name))
    return TerminalTable(("stage", "outcome", "cases passed", "speed vs previous", "kernels", "file"), rows)


def passed_of_all(verdict: Verdict) -> str:
    """`80 of 80`; `68 of 71, 1 undecided, 2 skipped: ...` where others came out otherwise."""
    counts = Counter(case.status for case in verdict.cases)
    others = [
        f"{count} {status.replace('_', ' ')}"
        for status, count in counts.items()
        if status not in ("passed", "skipped")
    ]
    passed = f"{counts['passed']} of {counts.total()}"
    return ", ".join(filter(None, (passed, *others, skipped_text(verdict.cases))))


def timing_table(timing: TimingTable) -> TerminalTable:
    """One row a callable."""
    rows = [
        (
            t.label,
            f"{t.median_ms:.4f}",
            f"{t.low_ms:.4f} to {t.high_ms:.4f}",
            "not measured" if t.gbytes_per_s is None else f"{t.gbytes_per_s:.0f}",
        )
        for t in timing.timings
    ]
    where = " at ".join(filter(None, (timing.device, point_name(timing.dims))))
    return TerminalTable((where, "median ms", "95 % interval", "GB/s"), rows)
