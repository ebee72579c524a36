"""What a report consists of, in order: plain data, which every format sets in its own way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.audit.report.wording import (
    folder_of,
    known_in,
    not_measured,
    place_of,
)
from pytorch_to_triton.benchmark.figures import percent
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport, CompiledFigures


@dataclass(frozen=True)
class Table:
    """Plain text, not yet escaped."""

    label: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Lines:
    """Sentences: a list, or a block of commands."""

    kind: Literal["list", "commands"]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """What the formats show in different ways: the source itself in one, excerpts of it in another."""

    kind: Literal["findings", "recommendations", "source", "timings", "rules"]


Part = Table | Lines | Piece


@dataclass(frozen=True)
class ReportSection:
    """A heading and what stands below it."""

    heading: str
    parts: tuple[Part, ...]


def sections(report: AuditReport) -> Iterator[ReportSection]:
    """The sections in order; one that would be empty is left out."""
    unread = [f"{relative(entry.file, folder_of(report))}: {entry.why}" for entry in report.unread]
    candidates: tuple[tuple[str, Part | None], ...] = (
        ("Summary", categories_table(report)),
        ("Findings", Piece("findings") if report.findings else None),
        ("Recommendations", Piece("recommendations") if report.recommendations else None),
        ("Source", Piece("source") if report.findings else None),
        ("Compiled", compiled_table(report) if report.compiled else None),
        ("Timings", Piece("timings") if report.timings else None),
        ("What was compiled and run", examined_table(report) if report.examined else None),
        ("What was not measured", _lines(list(not_measured(report)))),
        ("Suppressed", suppressed_table(report) if report.suppressed else None),
        ("Files not read", _lines(unread)),
        ("Notes", _lines(report.notes)),
        ("Rules", Piece("rules") if report.findings else None),
        ("Reproduce", Lines("commands", report.commands) if report.commands else None),
    )
    for heading, part in candidates:
        if part:
            known = _lines([known_in(report)] if heading == "Summary" and known_in(report) else [])
            yield ReportSection(heading, (part, known) if known else (part,))


def _lines(lines: Sequence[str]) -> Lines | None:
    return Lines("list", tuple(lines)) if lines else None


def categories_table(report: AuditReport) -> Table:
    """One row per category: its status, and how many findings of each severity it has."""
    return Table(
        "Findings by category and severity",
        ("category", "status", *SEVERITIES),
        tuple(
            (
                category.category,
                category.status,
                *(str(category.counts.get(severity, 0)) for severity in SEVERITIES),
            )
            for category in report.categories
        ),
    )


def compiled_table(report: AuditReport) -> Table:
    """One row per kernel, GPU and configuration."""
    headings = ("kernel", "compiled for", "registers per thread", "spilled bytes", "shared bytes")
    return Table(
        "Resources of each compiled kernel",
        (*headings, "occupancy", "widest load", "widest store"),
        tuple(_compiled_row(figures) for figures in report.compiled),
    )


def _compiled_row(figures: CompiledFigures) -> tuple[str, ...]:
    return (
        figures.kernel,
        figures.where,
        str(figures.registers),
        f"{figures.spill_bytes:,}",
        f"{figures.shared_bytes:,}",
        percent(figures.occupancy),
        _bits(figures.widest_load_bits),
        _bits(figures.widest_store_bits),
    )


def _bits(width: int | None) -> str:
    return "none" if width is None else f"{width} bits"


def examined_table(report: AuditReport) -> Table:
    """One row per target that was compiled or run, or could not be."""
    return Table(
        "What was compiled and run",
        ("target", "evidence", "result", "provenance"),
        tuple(
            (
                examination.target,
                examination.kind,
                examination.summary,
                examination.provenance or "no figures",
            )
            for examination in report.examined
        ),
    )


def suppressed_table(report: AuditReport) -> Table:
    """One row per finding that a comment suppresses."""
    folder = folder_of(report)
    return Table(
        "Findings suppressed by a comment",
        ("place", "rule", "severity", "reason"),
        tuple(
            (place_of(entry.finding, folder), entry.finding.rule, entry.finding.severity, entry.reason)
            for entry in report.suppressed
        ),
    )
