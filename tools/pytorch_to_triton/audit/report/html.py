"""The report as one page of HTML, without network or scripts; its findings stand in the source."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import starmap
from pathlib import Path
from string import Template

from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.audit.report.annotated import LinkedFinding, annotated
from pytorch_to_triton.audit.report.elements import badge, block, code, items, table, text
from pytorch_to_triton.audit.report.tables import (
    Table,
    categories_table,
    compiled_table,
    examined_table,
    suppressed_table,
)
from pytorch_to_triton.audit.report.wording import (
    CATEGORIES,
    counted,
    folder_of,
    is_address,
    known_in,
    legend_of,
    listed,
    moment_of,
    not_measured,
    paragraphs_of,
    place_of,
    rules_in,
    shown,
    subject_of,
    verdict_of,
)
from pytorch_to_triton.benchmark.flags import all_flags, told
from pytorch_to_triton.benchmark.speed_report import brief_table
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport, Finding

MOST = 40
"""So many findings are listed ahead of the source; the rest of the list is folded."""

_HERE = Path(__file__).parent
_PICTURED = {
    "speedup": "Speed-up of {kernel} over its baselines against the size; the table above has the figures.",
    "roofline": "Roofline: the rate that {kernel} reaches at each size, and the limits of the GPU.",
}


def html(report: AuditReport, sources: Mapping[Path, str]) -> str:
    """The page; `sources` has the text of files with findings, the pictures of timings are read from disk."""
    entries = [
        LinkedFinding(finding, f"finding-{number}") for number, finding in enumerate(report.findings, 1)
    ]
    sections: tuple[tuple[str, Callable[[], Iterator[str]]], ...] = (
        ("Summary", lambda: _summary(report)),
        ("Findings", lambda: _findings(report, entries)),
        ("Recommendations", lambda: _recommendations(report, entries)),
        ("Source", lambda: _sources(report, entries, sources)),
        ("Compiled", lambda: _compiled(report)),
        ("Timings", lambda: _timings(report)),
        ("What was compiled and run", lambda: _examined(report)),
        ("What was not measured", lambda: _bullets(not_measured(report))),
        ("Set aside", lambda: _suppressed(report)),
        ("Not read", lambda: _unread(report)),
        ("Notes", lambda: _bullets(iter(report.notes))),
        ("Rules", lambda: _rules(report)),
        ("Again", lambda: _again(report)),
    )
    pieces = [*_head(report)]
    for heading, section in sections:
        body = list(section())
        if body:
            pieces += [f"<h2>{heading}</h2>", *body]
    return _page(f"Audit of {subject_of(report)}", "\n".join(pieces))


def _page(title: str, body: str) -> str:
    style = _shipped("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return Template(_shipped("page.html")).substitute(
        title=escape(title), policy=policy, style=style, body=body
    )


@cache
def _shipped(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _head(report: AuditReport) -> Iterator[str]:
    yield f'<div class="verdict"><h1>Audit of {text(subject_of(report))}</h1>{badge(report.verdict)}</div>'
    yield f"<p>{text(report.summary)}</p>"
    yield f"<p>{text(report.next_step)}</p>"
    facts = {
        "Verdict": f"{report.verdict}: {verdict_of(report)}",
        "Audited": f"{counted(len(report.files), 'file')}, {counted(report.kernels, 'Triton function')}",
        "Folder": folder_of(report).as_posix() if report.files else "",
        "Date": moment_of(report),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{text(fact)}</dd>" for name, fact in facts.items() if fact)
    yield f'<dl class="facts">{rows}</dl>'


def _summary(report: AuditReport) -> Iterator[str]:
    yield table(categories_table(report), "Findings by category and severity")
    if known := known_in(report):
        yield f"<p>{known}</p>"


def _findings(report: AuditReport, entries: Sequence[LinkedFinding]) -> Iterator[str]:
    if not entries:
        return
    yield from _filter(report.findings)
    folder = folder_of(report)
    yield _index(entries[:MOST], folder)
    if rest := entries[MOST:]:
        yield f"<details><summary>{counted(len(rest), 'more finding')}</summary>"
        yield f"{_index(rest, folder)}</details>"
    meanings = (f"<dt>{word}</dt><dd>{meaning}</dd>" for word, meaning in legend_of(report).items())
    yield f'<dl class="facts">{"".join(meanings)}</dl>'


def _index(entries: Sequence[LinkedFinding], folder: Path) -> str:
    rows = []
    for entry in entries:
        finding = entry.finding
        told = f"<span>{_link(entry, folder)} {text(finding.message)}</span>"
        rows.append(
            f'<li data-severity="{finding.severity}" data-category="{finding.category}">'
            f"{badge(finding.severity)}{told}</li>"
        )
    return "\n".join(('<ol class="index">', *rows, "</ol>"))


def _filter(findings: Sequence[Finding]) -> Iterator[str]:
    """A box for each severity and category, where there is a choice."""
    severities = {finding.severity for finding in findings}
    categories = {finding.category for finding in findings}
    for legend, there, order in (("Severity", severities, SEVERITIES), ("Category", categories, CATEGORIES)):
        if len(there) > 1:
            boxes = "".join(_box(word) for word in order if word in there)
            yield f'<fieldset class="filter"><legend>{legend}</legend>{boxes}</fieldset>'


def _box(word: str) -> str:
    return f'<label><input type="checkbox" id="show-{word.replace(" ", "-")}" checked> {word}</label>'


def _link(entry: LinkedFinding, folder: Path) -> str:
    return f'<a href="#{entry.anchor}">{text(place_of(entry.finding, folder))}</a>'


def _recommendations(report: AuditReport, entries: Sequence[LinkedFinding]) -> Iterator[str]:
    folder = folder_of(report)
    told = [
        f"{badge(one.severity)} <strong>{text(one.title)}</strong><br>{text(one.suggestion)}<br>"
        + listed([_link(entry, folder) for entry in entries if entry.finding.rule == one.rule])
        for one in report.recommendations
    ]
    if told:
        yield items(told, tag="ol")


def _sources(
    report: AuditReport, entries: Sequence[LinkedFinding], sources: Mapping[Path, str]
) -> Iterator[str]:
    folder = folder_of(report)
    for file in sorted({entry.finding.file for entry in entries}):
        yield f"<h3>{text(shown(file, folder))}</h3>"
        those = [entry for entry in entries if entry.finding.file == file]
        yield annotated(file, sources.get(file), those, folder)


def _compiled(report: AuditReport) -> Iterator[str]:
    if report.compiled:
        yield table(compiled_table(report), "What each kernel occupies")


def _timings(report: AuditReport) -> Iterator[str]:
    for timing in report.timings:
        yield f"<h3>{text(timing.kernel)}</h3>"
        yield f"<p>{text(timing.summary)}</p>"
        yield f'<p class="soft">{text(timing.device)}; {text(timing.provenance)}.</p>'
        headings, rows = brief_table(timing)
        yield table(Table(headings, tuple(rows)), f"Times of {timing.kernel}")
        yield from _bullets(f"Red flag: {told(*flag)}" for flag in all_flags(timing.tables, timing.flags))
        yield from _pictures(timing)


def _pictures(timing: Benchmark) -> Iterator[str]:
    for path in timing.pictures:
        about = _PICTURED.get(path.stem, "{kernel}: " + path.stem).format(kernel=timing.kernel)
        if path.is_file():
            data = base64.b64encode(path.read_bytes()).decode()
            yield f'<figure><img src="data:image/png;base64,{data}" alt="{escape(about)}"></figure>'
        else:
            yield f'<p class="soft">{text(path.name)} is not where it was drawn.</p>'


def _examined(report: AuditReport) -> Iterator[str]:
    if report.examined:
        yield table(examined_table(report), "What was compiled and run")


def _suppressed(report: AuditReport) -> Iterator[str]:
    if report.suppressed:
        yield table(suppressed_table(report), "Findings that a comment sets aside")


def _unread(report: AuditReport) -> Iterator[str]:
    folder = folder_of(report)
    yield from _bullets(f"{shown(one.file, folder)}: {one.why}" for one in report.unread)


def _bullets(lines: Iterator[str]) -> Iterator[str]:
    told = [text(line) for line in lines]
    if told:
        yield items(told)


def _rules(report: AuditReport) -> Iterator[str]:
    if rules := rules_in(report):
        yield f'<dl class="rules">{"".join(starmap(_rule, rules.items()))}</dl>'


def _rule(rule: Rule, page: str) -> str:
    title, *why = paragraphs_of(rule)
    more = f"<p>See {_page_link(page)}.</p>" if page else ""
    return (
        f'<dt id="rule-{rule.name}">{code(rule.name)}: {text(title)}</dt>'
        f"<dd>{''.join(map(_paragraph, why))}{more}</dd>"
    )


def _paragraph(paragraph: str) -> str:
    return block(paragraph, "Example") if paragraph.startswith("    ") else f"<p>{text(paragraph)}</p>"


def _page_link(page: str) -> str:
    return f'<a href="{escape(page)}">{escape(page)}</a>' if is_address(page) else code(page)


def _again(report: AuditReport) -> Iterator[str]:
    if commands := report.commands:
        yield block("\n".join(commands), "Commands")
