"""The report in Markdown: for a pull request, a file in the repository, or a terminal."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pytorch_to_triton.audit.report.sections import Lines, Part, Piece, Table, sections
from pytorch_to_triton.audit.report.wording import (
    CATEGORIES,
    PLACES,
    evidence_of,
    folder_of,
    is_address,
    legend_of,
    more_than_shown,
    paragraphs_of,
    place_of,
    rules_in,
    scope_of,
    title_of,
    verdict_of,
    visible,
)
from pytorch_to_triton.benchmark.speed_report import (
    conditions_section,
    flags_section,
    speed_section,
    table_lines,
)
from pytorch_to_triton.schema.finding import AuditReport, Finding

_TOKEN = re.compile(
    r"""
    (?<!`)`(?P<code>[^`]+)`(?!`)
    | (?P<mention>@[A-Za-z][\w.-]*\w)   # where code is reviewed, a bare @triton.jit would call somebody
    | [\\`*\[\]~$]                      # emphasis, links, strikethrough, mathematics, escapes themselves
    | (?<![^\W_])_ | _(?![^\W_])        # emphasis too, but not within a word
    | <(?=[A-Za-z/!?])                  # HTML
    | &(?=[#\w]+;)                      # a character reference
    | ^[#>+=-]                          # a heading, a quotation, a list
    """,
    re.VERBOSE,
)
_NUMBERED = re.compile(r"^(\d+)([.)])")


def markdown(report: AuditReport) -> str:
    """The whole report, ending in a line break."""
    lines = [f"# Audit of {text(title_of(report))}", "", *_head(report)]
    for section in sections(report):
        parts = ("\n".join(_part(part, report)).rstrip() for part in section.parts)
        body = "\n\n".join(part for part in parts if part)
        if body:
            lines += ["", f"## {section.heading}", "", body]
    return "\n".join(lines) + "\n"


def _part(part: Part, report: AuditReport) -> Iterator[str]:
    match part:
        case Table():
            rows = [[text(cell).replace("|", "&#124;") for cell in row] for row in part.rows]
            yield from table_lines(part.headings, rows)
        case Lines(kind="list", lines=lines):
            yield from (f"- {text(line)}" for line in lines)
        case Lines(lines=commands):
            yield from fence_code("\n".join(commands), "sh")
        case Piece(kind=kind):
            yield from _PIECES[kind](report)


def _head(report: AuditReport) -> Iterator[str]:
    yield from (text(report.summary), "", text(report.next_step), "")
    yield f"- Verdict: **{report.verdict}** ({verdict_of(report)})."
    yield from (f"- {word}: {text(fact)}." for word, fact in scope_of(report).items())


def text(prose: str) -> str:
    """Prose as one line in which nothing but code spans means anything to Markdown."""
    escaped = _TOKEN.sub(_escape, " ".join(visible(prose).split()))
    return _NUMBERED.sub(r"\1\\\2", escaped)


def paragraph(about: str) -> str:
    """One paragraph of a rule's description; only what is indented is code."""
    return about if about.startswith("    ") else text(about)


def _escape(token: re.Match[str]) -> str:
    span = token["code"] or token["mention"]
    return code(span) if span else f"\\{token[0]}"


def code(source: str) -> str:
    """A code span, whatever backticks the source has."""
    line = " ".join(visible(source).split())
    ticks = "`" * (_longest_run(line) + 1)
    edge = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{edge}{line}{edge}{ticks}"


def fence_code(source: str, language: str = "") -> Iterator[str]:
    """A block of code, whatever fences the source has."""
    ticks = "`" * max(3, _longest_run(source) + 1)
    yield f"{ticks}{language}"
    yield visible(source).rstrip("\n")
    yield ticks


def _longest_run(source: str) -> int:
    return max((len(run) for run in re.findall("`+", source)), default=0)


def _findings(report: AuditReport) -> Iterator[str]:
    yield "Kinds of evidence:\n"
    yield from (f"- {word}: {meaning}." for word, meaning in legend_of(report).items())
    folder = folder_of(report)
    for category in CATEGORIES:
        findings = [finding for finding in report.findings if finding.category == category]
        if findings:
            yield f"\n### {category.capitalize()}"
        for finding in findings:
            yield ""
            yield from _finding(finding, folder)


def _finding(finding: Finding, folder: Path) -> Iterator[str]:
    inside = f" in {code(finding.kernel)}" if finding.kernel else ""
    yield f"#### {code(finding.rule)} at {text(place_of(finding, folder))}{inside}"
    yield ""
    known = ", in the baseline" if finding.known else ""
    yield f"**{finding.severity}**, evidence: {evidence_of(finding)}{known}"
    if finding.excerpt:
        yield ""
        yield from fence_code(finding.excerpt, "python")
    yield f"\n{text(finding.message)}"
    if finding.proof:
        yield "\nEvidence:\n"
        yield from fence_code(finding.proof, "text")
    yield f"\nFix: {text(finding.suggestion)}"
    if finding.fix:
        yield ""
        yield from fence_code(finding.fix, "python")
    yield f"\n[About this rule](#{finding.rule})"


def _recommendations(report: AuditReport) -> Iterator[str]:
    for number, one in enumerate(report.recommendations, 1):
        where = ", ".join(map(text, one.places[:PLACES])) + more_than_shown(len(one.places))
        yield f"{number}. **{one.severity}** {code(one.rule)}: {text(one.title)}"
        yield f"   {text(one.suggestion)} ({where})"


def _timings(report: AuditReport) -> Iterator[str]:
    for timing in report.timings:
        yield f"### {text(timing.kernel)}"
        yield f"\n{text(timing.summary)}\n"
        yield from conditions_section(timing)
        yield ""
        yield from speed_section(timing)
        flags = list(flags_section(timing))
        if flags:
            yield "\nRed flags:\n"
            yield from flags
        if timing.folder:
            yield f"\nAll figures and pictures are in {code(timing.folder.as_posix())}."
        yield ""


def _rules(report: AuditReport) -> Iterator[str]:
    for rule, page in rules_in(report).items():
        yield f"### {rule.name}"
        yield from (f"\n{paragraph(one)}" for one in paragraphs_of(rule))
        if page:
            yield f"\nSee {f'<{page}>' if is_address(page) else code(page)}."
        yield ""


_PIECES: dict[str, Callable[[AuditReport], Iterator[str]]] = {
    "findings": _findings,
    "recommendations": _recommendations,
    # Excerpts stand with the findings.
    "source": lambda _: iter(()),
    "timings": _timings,
    "rules": _rules,
}
