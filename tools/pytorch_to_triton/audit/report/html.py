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
from pytorch_to_triton.audit.report.sections import Table, sections
from pytorch_to_triton.benchmark.flags import all_flags, flag_text
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport

if TYPE_CHECKING:
    from jinja2 import Environment
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from pytorch_to_triton.audit.source import lines_of
from pytorch_to_triton.schema.finding import Finding

AROUND = 5
"""Lines that are shown before and after a finding."""
WORTH_FOLDING = 10
"""Fewer lines between findings are shown as well."""


@dataclass(frozen=True)
class LinkedFinding:
    """A finding and the name that links reach it by."""

    finding: Finding
    anchor: str


@dataclass(frozen=True)
class Stretch:
    """Lines that stand in one block of code; from 1, both ends included."""

    first: int
    last: int
    folded: bool

    @property
    def label(self) -> str:
        """`lines 3 to 7`."""
        return f"lines {self.first} to {self.last}" if self.last > self.first else f"line {self.first}"


@dataclass(frozen=True)
class AnnotatedStretch:
    """A stretch with its text, and the findings at its last line."""

    stretch: Stretch
    lines: Sequence[str]
    entries: Sequence[LinkedFinding]
    """At its last line; no other has any."""


def annotate(source: str | None, entries: Sequence[LinkedFinding]) -> list[AnnotatedStretch]:
    """A file with its findings below their lines; excerpts alone where the source has no such line."""
    lines = lines_of(source) if source is not None else []
    rows = []
    marked = sorted({entry.finding.line for entry in entries if 1 <= entry.finding.line <= len(lines)})
    for stretch in stretches(len(lines), marked):
        here = [entry for entry in entries if entry.finding.line == stretch.last]
        rows.append(AnnotatedStretch(stretch, lines[stretch.first - 1 : stretch.last], here))
    for entry in entries:
        line = entry.finding.line
        if not 1 <= line <= len(lines):
            excerpt = Stretch(line, line, folded=False)
            rows.append(AnnotatedStretch(excerpt, [entry.finding.excerpt], [entry]))
    return rows


def stretches(count: int, marked: Sequence[int]) -> Iterator[Stretch]:
    """A file of `count` lines in pieces, which end at marked lines and where folding begins or ends."""
    hidden = _foldable(count, marked)
    for folded, run in groupby(range(1, count + 1), key=hidden.__contains__):
        first, *rest = run
        last = rest[-1] if rest else first
        cuts = [line for line in marked if first <= line < last]
        for before, end in pairwise((first - 1, *cuts, last)):
            yield Stretch(before + 1, end, folded)


def _foldable(count: int, marked: Sequence[int]) -> set[int]:
    """The lines in runs without findings that are worth folding."""
    near = {line for mark in marked for line in range(mark - AROUND, mark + AROUND + 1)}
    runs = [list(run) for is_near, run in groupby(range(1, count + 1), near.__contains__) if not is_near]
    return {line for run in runs if len(run) >= WORTH_FOLDING for line in run}


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
