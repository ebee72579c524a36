"""What findings come to: counts, what to do first, in words."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pytorch_to_triton.audit.baseline import name_of
from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.schema.finding import (
    SEVERITIES,
    Category,
    CategoryStatus,
    Finding,
    Recommendation,
    Severity,
)


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """The worst first; what is certain before what is suspected; then by place."""
    return sorted(
        findings,
        key=lambda f: (SEVERITIES.index(f.severity), f.suspected, f.file, f.line, f.column, f.rule),
    )


def at_least(severity: Severity, least: Severity) -> bool:
    """Whether a severity is as bad as `least`, or worse."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(least)


def failing(findings: Sequence[Finding], fail_on: Severity) -> list[Finding]:
    """Those that count against the verdict."""
    return [f for f in findings if at_least(f.severity, fail_on) and not f.known]


def statuses(findings: Sequence[Finding], fail_on: Severity) -> tuple[CategoryStatus, ...]:
    """One a category, in the order of Category."""
    told = []
    for category in get_args(Category):
        own = [finding for finding in findings if finding.category == category]
        counts = Counter(finding.severity for finding in own)
        told.append(
            CategoryStatus(
                category=category,
                status="faulty" if failing(own, fail_on) else "worth a look" if own else "clean",
                counts={severity: counts[severity] for severity in SEVERITIES if counts[severity]},
            )
        )
    return tuple(told)


def recommendations(
    findings: Sequence[Finding], rules: Sequence[Rule], root: Path
) -> tuple[Recommendation, ...]:
    """One a rule: by its worst finding, then by how many there are. Known findings are left out."""
    titles = {rule.name: rule.title for rule in rules}
    by_rule: dict[str, list[Finding]] = {}
    for finding in ranked([finding for finding in findings if not finding.known]):
        by_rule.setdefault(finding.rule, []).append(finding)
    told = [
        Recommendation(
            rule=name,
            severity=own[0].severity,
            title=titles.get(name, name),
            instead=own[0].instead,
            places=tuple(f"{name_of(f.file, root)}:{f.line}" for f in own),
        )
        for name, own in by_rule.items()
    ]
    return tuple(sorted(told, key=lambda one: (SEVERITIES.index(one.severity), -len(one.places), one.rule)))


def summary_of(findings: Sequence[Finding], kernels: int, files: int, unread: int) -> str:
    """How many of what, where."""
    counts = Counter(finding.severity for finding in findings)
    told = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity])
    where = f"{counted(kernels, 'Triton function')} in {counted(files, 'file')}"
    found = f"{counted(len(findings), 'finding')} ({told})" if findings else "No findings"
    known = sum(finding.known for finding in findings)
    old = f" The baseline has {known} of them." if known else ""
    left = f" {counted(unread, 'file')} could not be read." if unread else ""
    return f"{found} in {where}.{old}{left}"


def next_step_of(findings: Sequence[Finding], kernels: int, root: Path, *, examined: bool) -> str:
    """What to do first."""
    new = [finding for finding in findings if not finding.known]
    if new:
        first = new[0]
        return f"First {name_of(first.file, root)}:{first.line}: {first.instead}"
    if findings:
        return "Nothing is new; mend what the baseline knows when there is time."
    if not kernels:
        return "Name files that define @triton.jit functions."
    if examined:
        return "Nothing to mend; benchmark tells how close the kernel is to the GPU's limit."
    return (
        "The source has none of the faults that the rules know; validate tells whether the kernel is right."
    )


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
