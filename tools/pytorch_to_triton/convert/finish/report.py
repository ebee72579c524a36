"""The report that one attaches to a pull request: what it is made from, and its sections as plain data."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.benchmark.figures import percent, size_of
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels
from pytorch_to_triton.convert.compiled_figures import figure_lines
from pytorch_to_triton.convert.conversion_report import beside_eager
from pytorch_to_triton.convert.finish.converted import described_kernels
from pytorch_to_triton.draft.file.module import STAGE_NAMES
from pytorch_to_triton.schema.benchmark import KERNEL, Benchmark
from pytorch_to_triton.schema.finding import AuditReport
from pytorch_to_triton.schema.session import Attempt, Understanding
from pytorch_to_triton.schema.verdict import CaseResult, Verdict
from pytorch_to_triton.validate.policy import Policy

MET_BY_FINISHING = frozenset({"incomplete_kernel_file"})
"""Rules that ask for what lies beside the finished file: tests, a benchmark."""
MOST = 60
"""Cases that are named; of more, the count is given."""


@dataclass(frozen=True)
class Dossier:
    """All that is known of a finished conversion."""

    name: str
    understood: Understanding
    stages: tuple[tuple[Attempt, str], ...]
    """The attempt that opened each gate, with its text."""
    attempts: tuple[Attempt, ...]
    validation: Verdict | None
    audit: AuditReport | None
    benchmark: Benchmark | None
    """A sweep over sizes; None without a device."""
    saved: str
    """What the backward pass keeps; empty where there is none."""
    machine: str
    commands: tuple[str, ...]
    """How to run it all again."""


@dataclass(frozen=True)
class Rows:
    """Plain text in rows."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ReportPart:
    """What stands below a heading: sentences, a table, commands and pictures, each where there are any."""

    heading: str
    lines: tuple[str, ...] = ()
    table: Rows | None = None
    commands: tuple[str, ...] = ()
    pictures: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report in every format."""

    title: str
    summary: tuple[str, ...]
    sections: tuple[ReportPart, ...]


def report_of(dossier: Dossier) -> Report:
    """The report; sections about which nothing is known are left out."""
    best, validation = dossier.stages[-1][0], dossier.validation
    skipped = validation.skipped if validation else ()
    summary = (
        f"Validated: {validation.summary}" if validation else "Not validated by this version.",
        speed_text(best, dossier.benchmark),
        dossier.machine,
    )
    sections = (
        speed_section(dossier.benchmark),
        stages_section(dossier.stages),
        ReportPart("What it computes", lines=dossier.understood.inputs, commands=dossier.understood.steps),
        ReportPart(
            "Gradients", lines=(dossier.understood.gradients, *([dossier.saved] if dossier.saved else []))
        ),
        left_section(calls_left(dossier), dossier.benchmark),
        tried_section(validation),
        ReportPart("Not tried", lines=tuple(dict.fromkeys(f"{skip.what}: {skip.why}" for skip in skipped))),
        ReportPart("Compiled", lines=figure_lines(dossier.audit.compiled) if dossier.audit else ()),
        findings_section(dossier.audit),
        attempts_section(dossier.attempts),
        ReportPart("Again", commands=dossier.commands),
    )
    return Report(f"{dossier.name} by Triton kernels", summary, tuple(s for s in sections if has_content(s)))


def has_content(section: ReportPart) -> bool:
    table = section.table and section.table.rows
    return bool(any(section.lines) or table or section.commands or section.pictures)


def speed_text(best: Attempt, benchmark: Benchmark | None) -> str:
    if benchmark is not None:
        return benchmark.summary
    text = beside_eager(best.times)
    return f"{text[:1].upper()}{text[1:]}." if text else "Speed: not measured, for want of a GPU."


def speed_section(benchmark: Benchmark | None) -> ReportPart:
    """Before and after by size, with the share of the limit."""
    if benchmark is None:
        return ReportPart("Speed")
    headings, rows = brief_table(benchmark)
    return ReportPart(
        "Speed",
        lines=(benchmark.device, benchmark.precision),
        table=Rows(tuple(headings), tuple(tuple(row) for row in rows)),
        pictures=benchmark.pictures,
    )


def calls_left(dossier: Dossier) -> tuple[str, ...]:
    """What stays PyTorch's, as the draft had it; nothing where the kernel that passed calls none of it."""
    validation = dossier.validation
    calls_some = validation is None or Policy().refused(validation.behavior.operators)
    return dossier.understood.calls if calls_some else ()


def left_section(calls: Sequence[str], benchmark: Benchmark | None) -> ReportPart:
    """The calls of PyTorch that are left, and how much of the GPU's time they take."""
    timed = [(table, table.of(KERNEL)) for table in benchmark.tables] if benchmark and calls else []
    shares = [
        f"{percent(kernel.library_ms / kernel.busy_ms)} at {size_of(table)}"
        for table, kernel in timed
        if kernel and kernel.busy_ms and kernel.library_ms is not None
    ]
    cost = [f"Share of the GPU's time that is not the kernels': {', '.join(shares)}."] if shares else []
    return ReportPart("Left to PyTorch", lines=(*calls, *cost))


def stages_section(stages: Sequence[tuple[Attempt, str]]) -> ReportPart:
    """What each stage's file has that the one before has not, and how much of it changed."""
    rows, before = [], ""
    for attempt, text in stages:
        kernels, earlier = kernels_in(text), kernels_in(before)
        fresh = [kernel for kernel in kernels if kernel not in earlier]
        same = f"the same {len(kernels)} as before" if len(kernels) > 1 else "the same one as before"
        name = f"{attempt.stage} {STAGE_NAMES[attempt.stage]}"
        rows.append((name, "; ".join(fresh) or same, tuning_in(text), changed_lines(before, text)))
        before = text
    return ReportPart(
        "The three stages", table=Rows(("stage", "new kernels", "tuning", "lines"), tuple(rows))
    )


def kernels_in(text: str) -> list[str]:
    """Each kernel in words, as parts of a sentence."""
    return [kernel.rstrip(".") for kernel in described_kernels(text)]


def tuning_in(text: str) -> str:
    """How many kernels choose among configurations, if any."""
    kernels = len(autotuned_kernels(text))
    return f"{kernels} autotuned kernel{'s' if kernels > 1 else ''}" if kernels else "fixed configurations"


def changed_lines(before: str, after: str) -> str:
    """Lines that are new and gone."""
    if not before:
        return f"{after.count(chr(10))} in all"
    marks = Counter(line[:1] for line in difflib.ndiff(before.splitlines(), after.splitlines()))
    return f"{marks['+']} new, {marks['-']} gone"


def tried_section(validation: Verdict | None) -> ReportPart:
    """How many cases of each kind came out how, and their names."""
    if validation is None:
        return ReportPart("Tried")
    groups = dict.fromkeys(case.group for case in validation.cases)
    rows = [(group.replace("_", " "), *outcome(validation.cases, group)) for group in groups]
    return ReportPart(
        "Tried", lines=validation.notes, table=Rows(("kind", "cases", "passed", "names"), tuple(rows))
    )


def outcome(cases: Sequence[CaseResult], group: str) -> tuple[str, str, str]:
    """Cases of a kind, how many passed, and which there are."""
    members = [case for case in cases if case.group == group]
    passed = sum(case.status == "passed" for case in members)
    names = ", ".join(case.name for case in members[:MOST])
    more = f" and {len(members) - MOST} more" if len(members) > MOST else ""
    return str(len(members)), str(passed), names + more


def findings_section(audit: AuditReport | None) -> ReportPart:
    """What the audit found, although nothing of it shut a gate."""
    if audit is None:
        return ReportPart("Findings")
    findings = (f for f in audit.findings if f.rule not in MET_BY_FINISHING)
    rows = tuple((f.severity, f.rule, f.message) for f in findings)
    lines = () if rows else ("None.",)
    return ReportPart("Findings", lines=lines, table=Rows(("severity", "rule", "what"), rows))


def attempts_section(attempts: Sequence[Attempt]) -> ReportPart:
    """Every attempt, with what kept its gate shut."""
    rows = []
    for attempt in attempts:
        unmet = "; ".join(f"{c.name}: {c.evidence}" for c in attempt.conditions if c.met == "not met")
        why = f"accepted: {attempt.accepted}. {unmet}" if attempt.accepted and unmet else unmet
        rows.append(
            (
                str(attempt.number),
                f"stage {attempt.stage}",
                "opened" if attempt.opened else "shut",
                why,
                attempt.when,
            )
        )
    return ReportPart(
        "Attempts", table=Rows(("attempt", "gate", "outcome", "what was missing", "when"), tuple(rows))
    )


def markdown(report: Report) -> str:
    """For a pull request."""
    lines = [f"# {report.title}", "", *(line for text in report.summary for line in (text, ""))]
    for section in report.sections:
        lines += [f"## {section.heading}", ""]
        lines += [*(f"- {text}" for text in section.lines if text), ""] if any(section.lines) else []
        if section.table and section.table.rows:
            lines += [row_of(section.table.headings), row_of(["---"] * len(section.table.headings))]
            lines += [*(row_of(row) for row in section.table.rows), ""]
        lines += [*(f"    {command}" for command in section.commands), ""] if section.commands else []
        lines += ["The page beside this file has the pictures.", ""] if section.pictures else []
    return "\n".join(lines).rstrip("\n") + "\n"


def row_of(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
