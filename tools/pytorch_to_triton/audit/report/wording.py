"""What the report says in the same words in every format."""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.schema.finding import AuditReport, Category, EvidenceKind, Finding

CATEGORIES: tuple[Category, ...] = get_args(Category)
EVIDENCE: Mapping[EvidenceKind, str] = {
    "source": "read in the source; nothing was compiled or run",
    "compiled": "seen in what the compiler made of the kernel; nothing was run",
    "measured": "seen when the kernel ran",
}
"""What a finding rests on."""
SUSPECTED = "cannot be settled by the source alone: look at the place, or have the kernel run"

PLACES = 8
"""A recommendation names so many."""

_FEW = 3
"""So many files are named in a title."""
_REORDERING = {
    ord(mark): f"\\u{ord(mark):04x}" for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
}
"""Characters that make text look other than what the compiler reads."""


def folder_of(report: AuditReport) -> Path:
    """The innermost folder that holds all audited files."""
    folders = [path.parent for path in report.files]
    return Path(os.path.commonpath(folders)) if folders else Path()


def shown(path: Path, folder: Path) -> str:
    """A path as a reader wants it: below the folder, with forward slashes."""
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def place_of(finding: Finding, folder: Path) -> str:
    """`softmax.py:12`."""
    return f"{shown(finding.file, folder)}:{finding.line}"


def subject_of(report: AuditReport) -> str:
    """What was audited, for a title: the files' names, or how many there are."""
    folder = folder_of(report)
    names = [shown(path, folder) for path in report.files]
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


def moment_of(report: AuditReport) -> str:
    """The date and the time of day to the minute."""
    return f"{utc(report.date):%Y-%m-%d %H:%M} UTC"


def utc(date: str) -> datetime:
    """A moment in ISO 8601; one without a time zone is in UTC."""
    moment = datetime.fromisoformat(date)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def verdict_of(report: AuditReport) -> str:
    """What the verdict means."""
    severe = report.fail_on if report.fail_on == "critical" else f"{report.fail_on} or worse"
    baseline = " that the baseline does not have" if any(f.known for f in report.findings) else ""
    count = "at least one finding" if report.verdict == "faulty" else "no finding"
    left = f"; {counted(len(report.not_run), 'file')} not run" if report.verdict == "not run" else ""
    return f"{count} of severity {severe}{baseline}{left}"


def known_in(report: AuditReport) -> str:
    """How many findings the baseline has; empty where it has none of them."""
    count = sum(finding.known for finding in report.findings)
    return f"The baseline has {count} of these {counted(len(report.findings), 'finding')}." if count else ""


def not_measured(report: AuditReport) -> Iterator[str]:
    """What nobody may conclude from this report, as the evidence for it was not taken."""
    taken = {examined.kind for examined in report.examined if examined.provenance}
    if "compiled" not in taken:
        yield "No kernel was compiled: registers, spills and the width of accesses are not known."
    if "measured" not in taken:
        yield "Nothing was run: wrong values, accesses out of bounds and races show only in a run."
    if all(timing.verdict == "estimated" for timing in report.timings):
        yield "No times were measured."
    suspected = sum(finding.suspected for finding in report.findings)
    if suspected:
        yield f"Suspicions that nothing measured has settled: {suspected}."


def rules_in(report: AuditReport) -> dict[Rule, str]:
    """The rules that found something, by name, and where each is explained."""
    pages = {finding.rule: finding.page for finding in report.findings}
    return {rule: pages[rule.name] for rule in all_rules() if rule.name in pages}


def paragraphs_of(rule: Rule) -> list[str]:
    """What a rule says of itself, a paragraph an item; only what is indented keeps its line breaks."""
    paragraphs = rule.about.split("\n\n")
    return [one.rstrip() if one.startswith("    ") else " ".join(one.split()) for one in paragraphs]


def example_of(rule: Rule) -> str:
    """Code that the rule finds; empty for a rule on timings, whose examples are recorded results."""
    return "" if rule.needs is TimedTarget else rule.bad[0].strip("\n")


def is_address(page: str) -> bool:
    """Whether the page of a rule is on the web, so that a report may link to it from anywhere."""
    return page.startswith(("https://", "http://"))


def visible(source: str) -> str:
    """The text with characters that reorder it on the screen written as escapes."""
    return source.translate(_REORDERING)


def listed(places: Sequence[str]) -> str:
    """The first places of a recommendation, and how many there are beside them."""
    rest = len(places) - PLACES
    return ", ".join(places[:PLACES]) + (f" and {rest} more" if rest > 0 else "")


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
