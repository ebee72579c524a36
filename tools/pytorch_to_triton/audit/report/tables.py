"""The tables of the report: headings and rows of plain text, which every format sets in its own way."""

from dataclasses import dataclass

from pytorch_to_triton.audit.report.wording import folder_of, place_of
from pytorch_to_triton.benchmark.figures import percent
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport, CompiledFigures


@dataclass(frozen=True)
class Table:
    """Plain text, not yet escaped."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def categories_table(report: AuditReport) -> Table:
    """One row a category: its status, and how many findings of each severity it has."""
    return Table(
        ("category", "status", *SEVERITIES),
        tuple(
            (one.category, one.status, *(str(one.counts.get(severity, 0)) for severity in SEVERITIES))
            for one in report.categories
        ),
    )


def compiled_table(report: AuditReport) -> Table:
    """One row a kernel, GPU and configuration."""
    return Table(
        (
            "kernel",
            "compiled for",
            "registers a thread",
            "spilled bytes",
            "shared bytes",
            "occupancy",
            "widest load",
            "widest store",
        ),
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
    """One row a target that was compiled or run, or could not be."""
    return Table(
        ("target", "evidence", "what came of it", "how"),
        tuple((one.target, one.kind, one.summary, one.provenance or "no figures") for one in report.examined),
    )


def suppressed_table(report: AuditReport) -> Table:
    """One row a finding that a comment sets aside."""
    folder = folder_of(report)
    return Table(
        ("place", "rule", "severity", "reason"),
        tuple(
            (place_of(one.finding, folder), one.finding.rule, one.finding.severity, one.reason)
            for one in report.suppressed
        ),
    )
