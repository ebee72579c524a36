"""Results as a person reads them on a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

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
from pytorch_to_triton.schema.verdict import CaseResult, OutputFigures, Verdict
from pytorch_to_triton.validate.conclusion import skipped_text
from pytorch_to_triton.validate.phrases import times
from pytorch_to_triton_server.inspection_tables import compiled_at, inspection_tables
from pytorch_to_triton_server.tables import TerminalTable, console_on_stdout, shown_path

_SCREEN = 24
"""Up to so many cases are listed on a terminal; of more, those that passed are counted by group."""
_REASON = 64
"""The most characters of a reason in a table that is kept short."""
_HEADINGS = ("case", "group", "outcome", "error / allowed", "reason")


def show(result: Value) -> None:
    """Print a result on stdout: its tables, then what it means and what to do next."""
    console = console_on_stdout()
    if isinstance(result, AuditReport) and result.document:
        sys.stdout.buffer.write(result.document.encode())
        return
    if isinstance(result, PageExcerpt):
        console.print(result.text, soft_wrap=True)
    case_table = cases_in_brief if console.is_terminal else every_case
    for table in tables_of(result, case_table):
        console.print(table)
    for line in closing_lines(result):
        # A command is to be copied, and a program reads lines: neither is broken.
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
    yield from (f"Note: {note}" for note in getattr(result, "notes", ()))
    if isinstance(result, FinishedConversion) and result.tests and result.tests.output:
        yield result.tests.output
    yield from result.model_dump(include={"summary", "next_step"}).values()
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
    if isinstance(result, Verdict) and result.verdict != "passed":
        if result.smallest:
            yield f"Smallest case with this mistake: {result.smallest}"
        yield f"Run it again: {result.replay}"


def tables_of(result: Value, case_table: Callable[[Verdict], TerminalTable]) -> Iterator[TerminalTable]:
    """The details, as tables; `case_table` makes that of a verdict."""
    match result:
        case Verdict():
            yield case_table(result)
            if result.skipped:
                yield TerminalTable(
                    ("not tested", "reason"), [(skip.what, skip.why) for skip in result.skipped]
                )
        case Conversion():
            yield stage_table(result)
            for stage in result.stages:
                if stage.verdict.verdict != "passed":
                    yield case_table(stage.verdict)
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
    """`80 of 80`; `68 of 70, 2 skipped: ...` where some could not be judged, which fails nothing."""
    passed = sum(case.status == "passed" for case in verdict.cases)
    return ", ".join(filter(None, (f"{passed} of {len(verdict.cases)}", skipped_text(verdict.cases))))


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


def every_case(verdict: Verdict) -> TerminalTable:
    """One row a case, and one for all that were not run; errors in units of the rounding error that the
    problem allows."""
    run = [case for case in verdict.cases if case.reason != "not_run"]
    return TerminalTable(_HEADINGS, [*map(row_of, run), *not_run(verdict)])


def not_run(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    """A row for all the cases that crashes and time-outs left out."""
    if cases := [case for case in verdict.cases if case.reason == "not_run"]:
        yield times(len(cases), "case"), "", "not run", "", cases[0].why


def cases_in_brief(verdict: Verdict) -> TerminalTable:
    """Few cases, or one row for all of a group that passed; what did not pass is listed last, in full."""
    if len(verdict.cases) <= _SCREEN:
        return every_case(verdict)
    passed = [case for case in verdict.cases if case.status == "passed"]
    others = [row_of(case) for case in verdict.cases if case.status != "passed" and case.reason != "not_run"]
    brief = ((*cells, cut(reason)) for *cells, reason in others)
    return TerminalTable(_HEADINGS, [*counted(passed), *brief, *not_run(verdict)])


def counted(passed: list[CaseResult]) -> Iterator[tuple[str, ...]]:
    """A row a group: how many cases, and the one that came closest to its limit."""
    groups = dict.fromkeys(case.group for case in passed)
    by_group = groupby(sorted(passed, key=lambda case: list(groups).index(case.group)), lambda c: c.group)
    for group, cases in by_group:
        several = list(cases)
        worst = max(several, key=lambda case: max(map(share_of_allowed, case.outputs), default=-1.0))
        count = f"{len(several)} cases" if len(several) > 1 else worst.name
        yield count, group, "passed", worst_error(worst), ""


def cut(reason: str) -> str:
    """Its beginning: what is below the table names one in full."""
    return reason if len(reason) <= _REASON else f"{reason[:_REASON].rpartition(' ')[0]} …"


def row_of(case: CaseResult) -> tuple[str, ...]:
    return case.name, case.group, case.status, worst_error(case), case.why


def share_of_allowed(output: OutputFigures) -> float:
    """How much of its allowed error an output took."""
    return output.candidate_error / output.allowed_error if output.allowed_error > 0 else -1.0


def worst_error(case: CaseResult) -> str:
    """The output that comes closest to its limit, or passes it by the most."""
    worst = max(case.outputs, key=share_of_allowed, default=None)
    if worst is None or worst.allowed_error <= 0:
        return ""
    failing = sum(output.failing for output in case.outputs)
    if failing and share_of_allowed(worst) <= 1:
        return f"{failing} not finite"
    return f"{worst.candidate_error:.3g} / {worst.allowed_error:.3g}"
