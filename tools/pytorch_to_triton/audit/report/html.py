"""The report as one page of HTML, without network or scripts; its findings stand in the source."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.audit.report import wording
from pytorch_to_triton.audit.report.annotated import AnnotatedStretch, LinkedFinding, annotate
from pytorch_to_triton.audit.report.sections import Table, sections
from pytorch_to_triton.benchmark.flags import all_flags, flag_text
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport

if TYPE_CHECKING:
    from jinja2 import Environment

MOST = 40
"""This many findings are listed ahead of the source; the rest of the list is folded."""

_TEMPLATES = Path(__file__).parent / "templates"
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PICTURED = {
    "speedup": "Speed-up of {kernel} over its baselines against the size; the table above has the figures.",
    "roofline": "Roofline: the rate that {kernel} reaches at each size, and the limits of the GPU.",
}


def html(report: AuditReport, sources: Mapping[Path, str]) -> str:
    """The page; `sources` has the text of files with findings, the pictures of timings are read from disk."""
    entries = [LinkedFinding(choice, f"finding-{number}") for number, choice in enumerate(report.findings, 1)]
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    verdict = f"{report.verdict}: {wording.verdict_of(report)}"
    content = {
        "report": report,
        "scope": {"Verdict": verdict, **wording.scope_of(report)},
        "sections": list(sections(report)),
        "entries": entries,
        "listed_at_once": MOST,
        "filters": filters(report),
        "files": files(entries, sources),
        "style": style,
        "style_sha256": base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        "folder": wording.folder_of(report),
    }
    return _environment().get_template("page.html").render(content)


@cache
def _environment() -> "Environment":
    # Importing Jinja2 takes time that only those who ask for HTML should spend.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: wording.visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = (relative, times_of, red_flags_of, pictures_of)
    environment.globals.update({function.__name__: function for function in functions}, wording=wording)
    # Text before, within and after each code span in turn.
    environment.filters["spans"] = _SPAN.split
    return environment


def filters(report: AuditReport) -> dict[str, list[str]]:
    """The severities and categories that occur, where there is a choice."""
    severities = {finding.severity for finding in report.findings}
    categories = {finding.category for finding in report.findings}
    choices: dict[str, list[str]] = {
        "Severity": [word for word in SEVERITIES if word in severities],
        "Category": [word for word in wording.CATEGORIES if word in categories],
    }
    return {legend: words for legend, words in choices.items() if len(words) > 1}


def files(
    entries: Sequence[LinkedFinding], sources: Mapping[Path, str]
) -> dict[Path, list[AnnotatedStretch]]:
    """The files with findings, by path."""
    paths = sorted({entry.finding.file for entry in entries})
    return {
        path: annotate(sources.get(path), [e for e in entries if e.finding.file == path]) for path in paths
    }


def times_of(timing: Benchmark) -> Table:
    """One row per size."""
    headings, rows = brief_table(timing)
    return Table(f"Times of {timing.kernel}", headings, tuple(rows))


def red_flags_of(timing: Benchmark) -> list[str]:
    """The worst first."""
    return [f"Red flag: {flag_text(*flag)}" for flag in all_flags(timing.tables, timing.flags)]


def pictures_of(timing: Benchmark) -> list[dict[str, str]]:
    """The pictures of a timing with descriptions; without data where the file is gone."""
    return [
        {
            "name": path.name,
            "description": _PICTURED.get(path.stem, "{kernel}: " + path.stem).format(kernel=timing.kernel),
            "data": base64.b64encode(path.read_bytes()).decode() if path.is_file() else "",
        }
        for path in timing.pictures
    ]
