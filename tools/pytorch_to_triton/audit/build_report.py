"""From all findings to the report: what remains of them, what they come to, and where it is written."""

import datetime
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytorch_to_triton.audit.baseline import (
    LookedAt,
    marked,
    name_of,
    updated,
    with_fingerprints,
    write_baseline,
)
from pytorch_to_triton.audit.conclude import (
    AuditScope,
    at_least,
    counted,
    failing,
    next_step_of,
    ranked,
    recommendations,
    statuses,
    summary_of,
)
from pytorch_to_triton.audit.examine import Examined
from pytorch_to_triton.audit.find_files import legible
from pytorch_to_triton.audit.read_source import SourceReading, read
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.report.render import rendered
from pytorch_to_triton.audit.request import TOOL, AuditPlan, AuditRequest
from pytorch_to_triton.audit.resolve import settled
from pytorch_to_triton.audit.settings import Settings
from pytorch_to_triton.audit.suppress import notes_on, set_aside
from pytorch_to_triton.command_line import replay, typed
from pytorch_to_triton.results import owner_of, put_file
from pytorch_to_triton.schema.finding import AuditReport, AuditVerdict, Finding, Suppressed, Unread


def concluded(
    plan: AuditPlan, readings: Sequence[SourceReading], findings: Sequence[Finding], examined: Examined
) -> AuditReport:
    """The report on all findings: after comments, runs, settings and the baseline, in that order."""
    names = {rule.name for rule in plan.rules}
    # What was measured may settle a suspicion even where its own rule was not asked for.
    weighed = [f for f in findings if f.rule in names or f.evidence == "measured"]
    kept, aside, notes = after_comments(weighed, readings, plan)
    outcome = settled(kept, all_rules(), examined.ran)
    own = [with_severity(f, plan.settings) for f in outcome.findings if f.rule in names]
    told = ranked(marked(with_fingerprints(own, plan.root), plan.baseline))
    read_ones = [reading for reading in readings if not reading.refusal]
    unread = [Unread(file=legible(r.file), why=r.refusal) for r in readings if r.refusal]
    kernels = sum(len(reading.kernels) for reading in read_ones)
    cleared = [
        f"{name_of(f.file, plan.root)}:{f.line}: {f.rule} was suspected; all cases ran without it."
        for f in outcome.cleared
        if f.rule in names
    ]
    failed = [note for reading in readings for note in reading.notes]
    not_run = tuple(r.file for r in read_ones if r.kernels and not was_decided(r.file, examined, findings))
    alone = frozenset(r.file for r in read_ones if r.is_kernel_file)
    scope = AuditScope(
        kernels, len(read_ones), len(unread), not_run, alone, is_compiled=bool(examined.compiled)
    )
    return AuditReport(
        summary=summary_of(told, scope),
        next_step=next_step_of(told, plan.fail_on, scope, plan.root),
        verdict=verdict_of(plan, told, unread, not_run),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        categories=statuses(told, plan.fail_on, not_run),
        findings=tuple(told),
        recommendations=recommendations(told, all_rules(), plan.root),
        files=tuple(reading.file for reading in read_ones),
        kernels=kernels,
        unread=tuple(unread),
        not_run=not_run,
        suppressed=tuple(one for one in aside if one.finding.rule in names),
        examined=tuple(examined.examinations),
        compiled=tuple(examined.compiled),
        timings=tuple(examined.timings),
        commands=tuple(commands_of(plan.request, examined)),
        fail_on=plan.fail_on,
        notes=(*examined.notes, *cleared, *notes, *failed),
    )


def verdict_of(
    plan: AuditPlan, told: Sequence[Finding], unread: Sequence[Unread], not_run: Sequence[Path]
) -> AuditVerdict:
    """faulty: a finding weighs enough, or a file that was named itself could not be read."""
    if failing(told, plan.fail_on) or unread_by_name(plan, unread):
        return "faulty"
    return "not run" if not_run else "clean"


def unread_by_name(plan: AuditPlan, unread: Sequence[Unread]) -> bool:
    """Whether a file that was named itself was not read: nothing says that it is clean."""
    return any(one.file in plan.files.named for one in unread)


def was_decided(file: Path, examined: Examined, findings: Sequence[Finding]) -> bool:
    """Whether runs have shown all kernels of a file to be right, or something in it to be wrong."""
    if any(finding.file == file and finding.evidence == "measured" for finding in findings):
        return True
    ran = examined.ran.get(file)
    return ran is not None and ran.clean and not ran.idle


def with_severity(finding: Finding, settings: Settings) -> Finding:
    """The finding with the severity that the project gives its rule."""
    wanted = settings.severity.get(finding.rule)
    return finding.model_copy(update={"severity": wanted}) if wanted else finding


def after_comments(
    findings: Sequence[Finding], readings: Sequence[SourceReading], plan: AuditPlan
) -> tuple[list[Finding], list[Suppressed], list[str]]:
    """What remains, what comments set aside, and which of them do nothing."""
    by_file: defaultdict[Path, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.file].append(finding)
    known = {reading.file for reading in readings}
    # Helpers that a target imports are not among the audited files, and their comments count too.
    around = [*readings, *(read(file) for file in sorted(by_file.keys() - known))]
    kept: list[Finding] = []
    aside: list[Suppressed] = []
    notes: list[str] = []
    for reading in around:
        left, gone = set_aside(by_file[reading.file], reading.comments)
        kept += left
        aside += gone
        if plan.rules == all_rules():
            notes += notes_on(name_of(reading.file, plan.root), reading.comments, gone, all_rules())
    return kept, aside, notes


def commands_of(request: AuditRequest, examined: Examined) -> Iterator[str]:
    """What does it all again."""
    yield replay("audit", request)
    yield from dict.fromkeys(one.replay for one in examined.examinations if one.replay)
    if not examined.timings:
        yield from (typed("benchmark", path) for path in examined.ran)


def delivered(plan: AuditPlan, report: AuditReport) -> AuditReport:
    """The report as it is handed over; baseline and document written where that was asked for."""
    request = plan.request
    if request.update_baseline and plan.baseline_file:
        looked_at = LookedAt(
            root=plan.root,
            files=frozenset(name_of(file, plan.root) for file in report.files),
            rules=frozenset(rule.name for rule in plan.rules),
        )
        baseline = updated(plan.baseline, report.findings, looked_at)
        write_baseline(plan.baseline_file, baseline)
        note = f"{plan.baseline_file} now holds {counted(len(baseline.findings), 'finding')}."
        report = report.model_copy(update={"notes": (*report.notes, note)})
    told = tuple(f for f in report.findings if at_least(f.severity, request.severity))
    report = report.model_copy(update={"findings": told})
    if plan.format is None:
        return shortened(report, request.most)
    document = rendered(report, plan.format, plan.root)
    if request.into is None:
        return shortened(report, request.most).model_copy(update={"document": document})
    owner = owner_of(TOOL, request.targets[0], request.into.parent)
    put_file(request.into, document, owner, force=request.force)
    return shortened(report, request.most).model_copy(update={"written": request.into})


def shortened(report: AuditReport, most: int | None) -> AuditReport:
    """The report with its worst findings alone, where there are more than `most`."""
    left = len(report.findings) - most if most is not None else 0
    if left <= 0:
        return report
    note = f"{counted(left, 'finding')} of least weight left out: narrow it down with a severity or a focus."
    return report.model_copy(update={"findings": report.findings[:most], "notes": (*report.notes, note)})
