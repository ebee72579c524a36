"""From all findings to the report: which remain, the verdict, and where the report is written."""

import datetime
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytorch_to_triton.audit.baseline import (
    BaselineScope,
    add_fingerprints,
    mark_known,
    notes_on,
    suppress,
    updated_baseline,
    write_baseline,
)
from pytorch_to_triton.audit.conclude import (
    AuditScope,
    at_least,
    count_of,
    failing,
    next_step_of,
    once_a_folder,
    rank,
    recommendations,
    resolve,
    statuses,
    summary_of,
)
from pytorch_to_triton.audit.examine import Examinations
from pytorch_to_triton.audit.find_files import printable, relative
from pytorch_to_triton.audit.read_source import SourceReading, read
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.report.render import render
from pytorch_to_triton.audit.request import TOOL, AuditPlan, AuditRequest, AuditSettings
from pytorch_to_triton.command_line import replay, typed
from pytorch_to_triton.results import owner_of, put_file
from pytorch_to_triton.schema.finding import AuditReport, AuditVerdict, Finding, Suppressed, Unread


def build_report(
    plan: AuditPlan, readings: Sequence[SourceReading], findings: Sequence[Finding], examined: Examinations
) -> AuditReport:
    """The report on all findings, after applying comments, runs, settings and the baseline in that order."""
    names = {rule.name for rule in plan.rules}
    # A measured finding may confirm a suspicion even where its own rule was not requested.
    considered = [f for f in findings if f.rule in names or f.evidence == "measured"]
    kept, aside, notes = without_suppressed(considered, readings, plan)
    outcome = resolve(kept, all_rules(), examined.ran)
    own = once_a_folder([with_severity(f, plan.settings) for f in outcome.findings if f.rule in names])
    ranked_findings = rank(mark_known(add_fingerprints(own, plan.root), plan.baseline))
    read_ones = [reading for reading in readings if not reading.refusal]
    unread = [Unread(file=printable(r.file), why=r.refusal) for r in readings if r.refusal]
    kernels = sum(len(reading.kernels) for reading in read_ones)
    cleared = [
        f"{relative(f.file, plan.root)}:{f.line}: {f.rule} was suspected, but every case ran without it."
        for f in outcome.cleared
        if f.rule in names
    ]
    failed = [note for reading in readings for note in reading.notes]
    not_run = tuple(r.file for r in read_ones if r.kernels and not is_decided(r.file, examined, findings))
    alone = frozenset(r.file for r in read_ones if r.is_kernel_file)
    idle = {file: ran.idle for file, ran in examined.ran.items() if ran.clean and ran.idle}
    scope = AuditScope(
        kernels, len(read_ones), len(unread), not_run, alone, is_compiled=bool(examined.compiled), idle=idle
    )
    return AuditReport(
        summary=summary_of(ranked_findings, scope),
        next_step=next_step_of(ranked_findings, plan.fail_on, scope, plan.root),
        verdict=verdict_of(plan, ranked_findings, unread, not_run),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        categories=statuses(ranked_findings, plan.fail_on, not_run),
        findings=tuple(ranked_findings),
        recommendations=recommendations(ranked_findings, all_rules(), plan.root),
        files=tuple(reading.file for reading in read_ones),
        kernels=kernels,
        unread=tuple(unread),
        not_run=not_run,
        suppressed=tuple(entry for entry in aside if entry.finding.rule in names),
        examined=tuple(examined.examinations),
        compiled=tuple(examined.compiled),
        timings=tuple(examined.timings),
        commands=tuple(commands_of(plan.request, examined)),
        fail_on=plan.fail_on,
        notes=(*examined.notes, *cleared, *notes, *failed),
    )


def verdict_of(
    plan: AuditPlan, findings: Sequence[Finding], unread: Sequence[Unread], not_run: Sequence[Path]
) -> AuditVerdict:
    """faulty: a finding is severe enough, or a named file could not be read."""
    if failing(findings, plan.fail_on) or unread_by_name(plan, unread):
        return "faulty"
    return "not run" if not_run else "clean"


def unread_by_name(plan: AuditPlan, unread: Sequence[Unread]) -> bool:
    """Whether a named file was not read, and so may be faulty."""
    return any(entry.file in plan.files.named for entry in unread)


def is_decided(file: Path, examined: Examinations, findings: Sequence[Finding]) -> bool:
    """Whether runs have shown all kernels of a file to be right, or one to be wrong."""
    if any(finding.file == file and finding.evidence == "measured" for finding in findings):
        return True
    ran = examined.ran.get(file)
    return ran is not None and ran.clean and not ran.idle


def with_severity(finding: Finding, settings: AuditSettings) -> Finding:
    """The finding with the severity that the project sets for its rule."""
    wanted = settings.severity.get(finding.rule)
    return finding.model_copy(update={"severity": wanted}) if wanted else finding


def without_suppressed(
    findings: Sequence[Finding], readings: Sequence[SourceReading], plan: AuditPlan
) -> tuple[list[Finding], list[Suppressed], list[str]]:
    """The findings that remain, those that comments suppress, and notes on comments without effect."""
    by_file: defaultdict[Path, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.file].append(finding)
    known = {reading.file for reading in readings}
    # Comments count in modules that a target imports, too, though these are not audited.
    around = [*readings, *(read(file) for file in sorted(by_file.keys() - known))]
    kept: list[Finding] = []
    aside: list[Suppressed] = []
    notes: list[str] = []
    for reading in around:
        left, gone = suppress(by_file[reading.file], reading.comments)
        kept += left
        aside += gone
        if plan.rules == all_rules():
            notes += notes_on(relative(reading.file, plan.root), reading.comments, gone, all_rules())
    return kept, aside, notes


def commands_of(request: AuditRequest, examined: Examinations) -> Iterator[str]:
    """The commands that reproduce the report."""
    yield replay("audit", request)
    yield from dict.fromkeys(
        examination.replay for examination in examined.examinations if examination.replay
    )
    if not examined.timings:
        yield from (typed("benchmark", path) for path in examined.ran)


def deliver(plan: AuditPlan, report: AuditReport) -> AuditReport:
    """The report as the caller gets it; writes the baseline and the document where requested."""
    request = plan.request
    if request.update_baseline and plan.baseline_file:
        scope = BaselineScope(
            root=plan.root,
            files=frozenset(relative(file, plan.root) for file in report.files),
            rules=frozenset(rule.name for rule in plan.rules),
        )
        baseline = updated_baseline(plan.baseline, report.findings, scope)
        write_baseline(plan.baseline_file, baseline)
        note = f"{plan.baseline_file} now holds {count_of(len(baseline.findings), 'finding')}."
        report = report.model_copy(update={"notes": (*report.notes, note)})
    severe = tuple(f for f in report.findings if at_least(f.severity, request.severity))
    report = report.model_copy(update={"findings": severe})
    if plan.format is None:
        return limit(report, request.most)
    document = render(report, plan.format, plan.root)
    if request.into is None:
        return limit(report, request.most).model_copy(update={"document": document})
    owner = owner_of(TOOL, request.targets[0], request.into.parent)
    put_file(request.into, document, owner, force=request.force)
    return limit(report, request.most).model_copy(update={"written": request.into})


def limit(report: AuditReport, most: int | None) -> AuditReport:
    """The report with the `most` worst findings only."""
    left = len(report.findings) - most if most is not None else 0
    if left <= 0:
        return report
    omitted = f"The {left} least severe of {len(report.findings)} findings are left out"
    note = f"{omitted}; narrow the audit down by severity or category."
    return report.model_copy(update={"findings": report.findings[:most], "notes": (*report.notes, note)})
