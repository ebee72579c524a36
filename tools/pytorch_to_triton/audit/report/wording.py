"""The phrases that every format of the report shares."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from pytorch_to_triton.audit.conclude import count_of
from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.schema.finding import AuditReport, Category, EvidenceKind, Finding

CATEGORIES: tuple[Category, ...] = get_args(Category)
EVIDENCE: Mapping[EvidenceKind, str] = {
    "source": "found in the source; nothing was compiled or run",
    "compiled": "found in the compiler's output; nothing was run",
    "measured": "observed while the kernel ran",
}
"""What a finding rests on."""
SUSPECTED = "the source alone cannot decide: check the line, or run the kernel"

PLACES = 8
"""A recommendation names at most this many."""

_FEW = 3
"""A title names at most this many files."""
_REORDERING = {
    ord(mark): f"\\u{ord(mark):04x}" for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}
"""Characters that make text look other than what the compiler reads."""


def folder_of(report: AuditReport) -> Path:
    """The innermost folder that holds all audited files."""
    folders = [path.parent for path in report.files]
    return Path(os.path.commonpath(folders)) if folders else Path()


def place_of(finding: Finding, folder: Path) -> str:
    """`softmax.py:12`."""
    return f"{relative(finding.file, folder)}:{finding.line}"


def title_of(report: AuditReport) -> str:
    """What was audited: the files' names, or how many there are."""
    folder = folder_of(report)
    names = [relative(path, folder) for path in report.files]
    match names:
        case []:
            return "no files"
        case [name]:
            return name
        case _ if len(names) > _FEW:
            return f"{len(names)} files in {folder.name or folder}"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def evidence_of(finding: Finding) -> str:
    """`source`, or `source, suspected`."""
    return f"{finding.evidence}, suspected" if finding.suspected else finding.evidence


def legend_of(report: AuditReport) -> dict[str, str]:
    """What the words for evidence mean, of those that the findings use."""
    used = {word for finding in report.findings for word in evidence_of(finding).split(", ")}
    meanings = [*EVIDENCE.items(), ("suspected", SUSPECTED)]
    return {word: meaning for word, meaning in meanings if word in used}


def scope_of(report: AuditReport) -> dict[str, str]:
    """What was audited, where and when."""
    audited = f"{count_of(len(report.files), 'file')}, {count_of(report.kernels, 'Triton function')}"
    folder = {"Folder": f"`{folder_of(report).as_posix()}`"} if report.files else {}
    return {"Audited": audited, **folder, "Date": f"{utc(report.date):%Y-%m-%d %H:%M} UTC"}


def utc(date: str) -> datetime:
    """A moment in ISO 8601; one without a time zone is in UTC."""
    moment = datetime.fromisoformat(date)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def verdict_of(report: AuditReport) -> str:
    """What the verdict means."""
    severe = report.fail_on if report.fail_on == "critical" else f"{report.fail_on} or worse"
    new = " new" if any(f.known for f in report.findings) else ""
    count = f"at least one{new} finding" if report.verdict == "faulty" else f"no{new} findings"
    left = f"; {count_of(len(report.not_run), 'file')} not run" if report.verdict == "not run" else ""
    return f"{count} of severity {severe}{left}"


def known_in(report: AuditReport) -> str:
    """How many findings the baseline has; empty where it has none of them."""
    count = sum(finding.known for finding in report.findings)
    if not count:
        return ""
    are = "is" if count == 1 else "are"
    return f"{count} of these {count_of(len(report.findings), 'finding')} {are} in the baseline."


def not_measured(report: AuditReport) -> Iterator[str]:
    """Evidence that was not taken, and what is therefore unknown."""
    taken = {examined.kind for examined in report.examined if examined.provenance}
    if "compiled" not in taken:
        yield "No kernel was compiled: register counts, spills and access widths are unknown."
    if "measured" not in taken:
        yield "Nothing was run: wrong values, out-of-bounds accesses and races only show in a run."
    if all(timing.verdict == "estimated" for timing in report.timings):
        yield "No times were measured."
    suspected = sum(finding.suspected for finding in report.findings)
    if suspected:
        yield f"{count_of(suspected, 'suspicion')} neither confirmed nor cleared by a run."


def rules_in(report: AuditReport) -> dict[Rule, str]:
    """The rules that found something, by name, and where each is explained."""
    pages = {finding.rule: finding.page for finding in report.findings}
    return {rule: pages[rule.name] for rule in all_rules() if rule.name in pages}


def paragraphs_of(rule: Rule) -> list[str]:
    """A rule's own description by paragraph; only what is indented keeps its line breaks."""
    paragraphs = rule.about.split("\n\n")
    return [
        paragraph.rstrip() if paragraph.startswith("    ") else " ".join(paragraph.split())
        for paragraph in paragraphs
    ]


def example_of(rule: Rule) -> str:
    """Code that the rule finds; empty for a rule on timings, whose examples are recorded results."""
    return "" if rule.needs is TimedTarget else rule.bad[0].strip("\n")


def is_address(page: str) -> bool:
    """Whether the page of a rule is on the web, so that a report may link to it from anywhere."""
    return page.startswith(("https://", "http://"))


def visible(source: str) -> str:
    """The text with characters that reorder it on the screen written as escapes."""
    return source.translate(_REORDERING)


def more_than_shown(places: int) -> str:
    """What follows the first places of a recommendation."""
    return f" and {places - PLACES} more" if places > PLACES else ""
