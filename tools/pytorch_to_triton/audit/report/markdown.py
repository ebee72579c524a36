"""The report in Markdown: for a pull request, a file in the repository, or a terminal."""

import re
from collections.abc import Iterator
from pathlib import Path

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
    evidence_of,
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
    sections = (
        ("Summary", _summary),
        ("Findings", _findings),
        ("Recommendations", _recommendations),
        ("Compiled", _compiled),
        ("Timings", _timings),
        ("What was compiled and run", _examined),
        ("What was not measured", _not_measured),
        ("Set aside", _suppressed),
        ("Not read", _unread),
        ("Notes", _notes),
        ("Rules", _rules),
        ("Again", _again),
    )
    lines = [f"# Audit of {text(subject_of(report))}", "", *_head(report)]
    for heading, section in sections:
        body = "\n".join(section(report)).rstrip()
        if body:
            lines += ["", f"## {heading}", "", body]
    return "\n".join(lines) + "\n"


def text(prose: str) -> str:
    """Prose as one line in which nothing but code spans means anything to Markdown."""
    escaped = _TOKEN.sub(_escaped, " ".join(visible(prose).split()))
    return _NUMBERED.sub(r"\1\\\2", escaped)


def paragraph(about: str) -> str:
    """One paragraph of what a rule says of itself; only what is indented is code."""
    return about if about.startswith("    ") else text(about)


def _escaped(token: re.Match[str]) -> str:
    span = token["code"] or token["mention"]
    return code(span) if span else f"\\{token[0]}"


def code(source: str) -> str:
    """A code span, whatever backticks the source has."""
    line = " ".join(visible(source).split())
    ticks = "`" * (_longest_run(line) + 1)
    edge = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{edge}{line}{edge}{ticks}"


def fenced(source: str, language: str = "") -> Iterator[str]:
    """A block of code, whatever fences the source has."""
    ticks = "`" * max(3, _longest_run(source) + 1)
    yield f"{ticks}{language}"
    yield visible(source).rstrip("\n")
    yield ticks


def _longest_run(source: str) -> int:
    return max((len(run) for run in re.findall("`+", source)), default=0)


def _table(table: Table) -> Iterator[str]:
    rows = [[text(cell).replace("|", "&#124;") for cell in row] for row in table.rows]
    return table_lines(table.headings, rows)


def _head(report: AuditReport) -> Iterator[str]:
    yield text(report.summary)
    yield ""
    yield text(report.next_step)
    yield ""
    yield f"- Verdict: **{report.verdict}** ({verdict_of(report)})."
    yield f"- Audited: {counted(len(report.files), 'file')}, {counted(report.kernels, 'Triton function')}."
    if report.files:
        yield f"- Folder: {code(folder_of(report).as_posix())}."
    yield f"- Date: {moment_of(report)}."


def _summary(report: AuditReport) -> Iterator[str]:
    yield from _table(categories_table(report))
    if known := known_in(report):
        yield f"\n{known}"


def _findings(report: AuditReport) -> Iterator[str]:
    if not report.findings:
        return
    yield "Evidence:\n"
    yield from (f"- {word}: {meaning}." for word, meaning in legend_of(report).items())
    folder = folder_of(report)
    for category in CATEGORIES:
        found = [finding for finding in report.findings if finding.category == category]
        if found:
            yield f"\n### {category.capitalize()}"
        for finding in found:
            yield ""
            yield from _finding(finding, folder)


def _finding(finding: Finding, folder: Path) -> Iterator[str]:
    inside = f" in {code(finding.kernel)}" if finding.kernel else ""
    yield f"#### {code(finding.rule)} at {text(place_of(finding, folder))}{inside}"
    yield ""
    known = ", known to the baseline" if finding.known else ""
    yield f"**{finding.severity}**, evidence: {evidence_of(finding)}{known}"
    if finding.excerpt:
        yield ""
        yield from fenced(finding.excerpt, "python")
    yield f"\n{text(finding.message)}"
    if finding.proof:
        yield "\nSeen:\n"
        yield from fenced(finding.proof, "text")
    yield f"\n{text(finding.suggestion)}"
    if finding.fix:
        yield ""
        yield from fenced(finding.fix, "python")
    yield f"\n[Why this matters](#{finding.rule})"


def _recommendations(report: AuditReport) -> Iterator[str]:
    for number, one in enumerate(report.recommendations, 1):
        where = listed([text(place) for place in one.places])
        yield f"{number}. **{one.severity}** {code(one.rule)}: {text(one.title)}"
        yield f"   {text(one.suggestion)} ({where})"


def _compiled(report: AuditReport) -> Iterator[str]:
    if report.compiled:
        yield from _table(compiled_table(report))


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
            yield f"\nThe pictures and all figures lie in {code(timing.folder.as_posix())}."
        yield ""


def _examined(report: AuditReport) -> Iterator[str]:
    if report.examined:
        yield from _table(examined_table(report))


def _not_measured(report: AuditReport) -> Iterator[str]:
    yield from (f"- {line}" for line in not_measured(report))


def _suppressed(report: AuditReport) -> Iterator[str]:
    if report.suppressed:
        yield from _table(suppressed_table(report))


def _unread(report: AuditReport) -> Iterator[str]:
    folder = folder_of(report)
    yield from (f"- {text(shown(one.file, folder))}: {text(one.why)}" for one in report.unread)


def _notes(report: AuditReport) -> Iterator[str]:
    yield from (f"- {text(note)}" for note in report.notes)


def _rules(report: AuditReport) -> Iterator[str]:
    for rule, page in rules_in(report).items():
        yield f"### {rule.name}"
        yield from (f"\n{paragraph(one)}" for one in paragraphs_of(rule))
        if page:
            yield f"\nSee {f'<{page}>' if is_address(page) else code(page)}."
        yield ""


def _again(report: AuditReport) -> Iterator[str]:
    if commands := report.commands:
        yield from fenced("\n".join(commands), "sh")
