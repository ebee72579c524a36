"""audit: what is wrong with Triton code, by its source, by what compilers make of it, and by running it."""

import datetime
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anyio import to_thread

from pytorch_to_triton.audit.baseline import (
    Baseline,
    marked,
    name_of,
    read_baseline,
    with_fingerprints,
    write_asked,
    write_baseline,
)
from pytorch_to_triton.audit.conclude import (
    at_least,
    counted,
    failing,
    next_step_of,
    ranked,
    recommendations,
    statuses,
    summary_of,
)
from pytorch_to_triton.audit.examine import (
    ARCHS,
    Examined,
    Examiner,
    compile_target,
    declares_inputs,
    run_target,
)
from pytorch_to_triton.audit.read import Reading, finished, read_all
from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.audit.report.render import Format, format_of, rendered
from pytorch_to_triton.audit.search import Searched, search
from pytorch_to_triton.audit.settings import Settings, refuse_unknown, settings_for
from pytorch_to_triton.audit.settle import settled
from pytorch_to_triton.audit.source import SourceFile, decoded, parse
from pytorch_to_triton.audit.suppress import comments_in, notes_on, set_aside
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.declaration import NO_OPTIONS, Options
from pytorch_to_triton.schema.finding import (
    AuditReport,
    Category,
    EvidenceKind,
    Finding,
    Severity,
    Suppressed,
    Unread,
)
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

Depth = Literal["auto", "source", "compiled", "measured"]
"""How far an audit goes; each includes the one before. auto: measured for files that are named and say what
they are called with, or where a reference is named; else source."""


Choose = Callable[[], Awaitable[Mode]]
"""Decides what kernels run on, which takes seconds."""


class Request(Value):
    """What to audit, and how."""

    targets: tuple[Target, ...]
    """Files and folders; `path.py:name` names the function that is called where kernels are run."""
    evidence: Depth = "auto"
    focus: Category | None = None
    """Only rules of this category."""
    rules: tuple[str, ...] = ()
    """Only these; none: all."""
    severity: Severity = "info"
    """The least that is told."""
    most: int | None = None
    """Findings in the result; a document holds all, and verdict and counts are of all."""
    fail_on: Severity | None = None
    """The least that makes the verdict faulty; None: as the project's settings say, else medium."""
    reference: Target | None = None
    """What kernels are compared with; None: the reference in their own file."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the files; they win."""
    archs: tuple[str, ...] = ()
    """GPUs to compile for; none: as the project's settings say, else one of each maker."""
    baseline: Path | None = None
    """A file of known findings; None: as the project's settings say."""
    update_baseline: bool = False
    """Write the baseline anew, with all that is found."""
    format: Format | None = None
    """Of the document to make; None: as the name in `into` says, else none."""
    into: Path | None = None
    """The file that the document is written to; None: it is in the report."""
    seconds: float = 120.0
    """How long one call may take."""


@dataclass(frozen=True)
class Plan:
    """A request with all that it leaves open decided."""

    request: Request
    settings: Settings
    files: Searched
    rules: tuple[Rule, ...]
    fail_on: Severity
    baseline_file: Path | None
    baseline: Baseline
    format: Format | None


async def audit(door: Door, request: Request, choose: Choose, watch: Watch) -> AuditReport:
    """Hold the rules against Triton code.

    A file is audited as it is, a folder for every *.py file below it that imports triton. `choose` is asked
    for the mode where something is to be run: never with evidence `source`. Raises TargetNotFound where a
    path does not exist, BadInput where a named file is not Python, or a setting, rule or baseline cannot be
    used.
    """
    plan = await to_thread.run_sync(planned, request)
    readings = await read_files(plan, watch)
    findings = [finding for reading in readings for finding in reading.findings]
    examined = Examined()
    targets = await to_thread.run_sync(lambda: list(targets_of(plan, readings)))
    if targets:
        examiner = Examiner(
            door=door,
            mode=await choose(),
            reference=request.reference,
            options=request.options,
            archs=request.archs or plan.settings.archs or ARCHS,
            seconds=request.seconds,
            watch=watch,
        )
        findings += await examine(targets, examiner, examined)
    report = await to_thread.run_sync(concluded, plan, readings, findings, examined)
    return await to_thread.run_sync(delivered, plan, report)


def planned(request: Request) -> Plan:
    """Decides what the request leaves open, and refuses what cannot be used before anything is read."""
    refuse_unknown(request.rules, "rule")
    files = [target.path for target in request.targets]
    settings = settings_for(files[0])
    searched = search(files, settings.exclude)
    baseline_file = request.baseline or settings.baseline
    if request.update_baseline and baseline_file is None:
        raise BadInput("There is no baseline to update.", "Name its file with --baseline.")
    known = (
        read_baseline(baseline_file)
        if baseline_file and not (request.update_baseline and not baseline_file.exists())
        else Baseline()
    )
    rules = tuple(
        rule
        for rule in all_rules()
        if request.focus in (None, rule.category)
        and (rule.name in request.rules if request.rules else rule.name not in settings.disable)
    )
    return Plan(
        request=request,
        settings=settings,
        files=searched,
        rules=rules,
        fail_on=request.fail_on or settings.fail_on,
        baseline_file=baseline_file,
        baseline=known,
        format=request.format or (format_of(request.into) if request.into else None),
    )


async def read_files(plan: Plan, watch: Watch) -> list[Reading]:
    """What source says of each file, in the order of the search. Raises BadInput for a named file."""
    files = (*plan.files.named, *plan.files.found)
    readings: dict[Path, Reading] = {}
    async for reading in read_all(files):
        await watch.progress(len(readings), len(files), f"auditing {reading.file.name}")
        if reading.refusal and reading.file in plan.files.named:
            raise BadInput(reading.refusal, reading.hint)
        readings[reading.file] = reading
    told = [readings[file] for file in files]
    return [r for r in told if r.refusal or r.imports_triton or r.file in plan.files.named]


async def examine(
    targets: Sequence[tuple[Target, SourceFile, EvidenceKind]], examiner: Examiner, into: Examined
) -> list[Finding]:
    """Compiles and runs the targets; what the rules find in what came of it."""
    sources: dict[Path, SourceFile] = {}
    for target, file, depth in targets:
        sources[file.path] = file
        await compile_target(examiner, target, file, into)
        if depth == "measured":
            await run_target(examiner, target, file, into)
    found = [finding for rule in all_rules() for piece in into.evidence for finding in rule.find(piece)]
    return merged(finished(f, sources[f.file]) if f.file in sources else f for f in found)


def targets_of(plan: Plan, readings: Sequence[Reading]) -> Iterator[tuple[Target, SourceFile, EvidenceKind]]:
    """What can be compiled and run, and how far to go with it."""
    request = plan.request
    if request.evidence == "source":
        return
    depth: EvidenceKind = "compiled" if request.evidence == "compiled" else "measured"
    named = {target.path.absolute(): target for target in request.targets}
    for reading in readings:
        if reading.refusal or (request.evidence == "auto" and reading.file not in plan.files.named):
            continue
        file = parse(reading.file, reading.file.read_bytes())
        asked = reading.file in named and (request.reference is not None or bool(request.options.inputs))
        if asked or (declares_inputs(file) and reading.kernels):
            yield named.get(reading.file, Target(path=reading.file)), file, depth


def merged(findings: Iterator[Finding]) -> list[Finding]:
    """One finding a rule and line, however many configurations and GPUs it was seen for."""
    told: dict[tuple[str, Path, int], Finding] = {}
    for finding in findings:
        place = (finding.rule, finding.file, finding.line)
        first = told.setdefault(place, finding)
        if finding.proof not in first.proof:
            told[place] = first.model_copy(update={"proof": f"{first.proof}\n{finding.proof}"})
    return list(told.values())


def concluded(
    plan: Plan, readings: Sequence[Reading], findings: Sequence[Finding], examined: Examined
) -> AuditReport:
    """The report: what remains of the findings after settings, runs, comments and the baseline."""
    settings, request = plan.settings, plan.request
    outcome = settled(findings, all_rules(), examined.clean)
    names = {rule.name for rule in plan.rules}
    own = [with_severity(f, settings) for f in outcome.findings if f.rule in names]
    kept, aside, notes = after_comments(own, readings)
    told = ranked(marked(with_fingerprints(kept, settings.root), plan.baseline))
    told = [finding for finding in told if at_least(finding.severity, request.severity)]
    read = [reading for reading in readings if not reading.refusal]
    unread = [Unread(file=r.file, why=r.refusal) for r in readings if r.refusal]
    kernels = sum(len(reading.kernels) for reading in read)
    cleared = [
        f"{name_of(f.file, settings.root)}:{f.line}: {f.rule} was suspected; all cases ran without it."
        for f in outcome.cleared
        if f.rule in names
    ]
    return AuditReport(
        summary=summary_of(told, kernels, len(read), len(unread)),
        next_step=next_step_of(told, kernels, examined=bool(examined.ran)),
        verdict="faulty" if failing(told, plan.fail_on) else "clean",
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        categories=statuses(told, plan.fail_on),
        findings=tuple(told),
        recommendations=recommendations(told, all_rules()),
        files=tuple(reading.file for reading in read),
        kernels=kernels,
        unread=tuple(unread),
        suppressed=tuple(aside),
        examined=tuple(examined.examinations),
        compiled=tuple(examined.compiled),
        timings=tuple(examined.timings),
        commands=tuple(commands_of(request, examined)),
        fail_on=plan.fail_on,
        notes=(*examined.notes, *cleared, *notes),
    )


def with_severity(finding: Finding, settings: Settings) -> Finding:
    """The finding with the severity that the project gives its rule."""
    wanted = settings.severity.get(finding.rule)
    return finding.model_copy(update={"severity": wanted}) if wanted else finding


def after_comments(
    findings: Sequence[Finding], readings: Sequence[Reading]
) -> tuple[list[Finding], list[Suppressed], list[str]]:
    """What remains, what comments set aside, and which of them do nothing."""
    kept: list[Finding] = []
    aside: list[Suppressed] = []
    notes: list[str] = []
    for reading in readings:
        own = [finding for finding in findings if finding.file == reading.file]
        comments = tuple(comments_in(decoded(reading.file.read_bytes()))) if not reading.refusal else ()
        left, gone = set_aside(own, comments)
        kept += left
        aside += gone
        notes += notes_on(reading.file.name, comments, gone)
    read = {reading.file for reading in readings}
    return kept + [finding for finding in findings if finding.file not in read], aside, notes


def commands_of(request: Request, examined: Examined) -> Iterator[str]:
    """What does it all again."""
    paths = shlex.join(str(target) for target in request.targets)
    yield f"pytorch-to-triton audit {paths}"
    yield from dict.fromkeys(one.replay for one in examined.examinations if one.replay)
    if not examined.timings:
        for path in examined.ran:
            yield f"pytorch-to-triton benchmark {shlex.quote(str(path))}"


def delivered(plan: Plan, report: AuditReport) -> AuditReport:
    """The report with its document, or the file that holds it, and the baseline written where asked."""
    request = plan.request
    if request.update_baseline and plan.baseline_file:
        write_baseline(plan.baseline_file, report.findings, plan.settings.root)
        told = f"{plan.baseline_file} now holds {counted(len(report.findings), 'finding')}."
        report = report.model_copy(update={"notes": (*report.notes, told)})
    if plan.format is None:
        return shortened(report, request.most)
    document = rendered(report, plan.format, plan.settings.root)
    if request.into is None:
        return shortened(report, request.most).model_copy(update={"document": document})
    write_asked(request.into, document)
    return shortened(report, request.most).model_copy(update={"written": request.into})


def shortened(report: AuditReport, most: int | None) -> AuditReport:
    """The report with its worst findings alone, where there are more than `most`."""
    left = len(report.findings) - most if most is not None else 0
    if left <= 0:
        return report
    note = f"{counted(left, 'finding')} of least weight left out: narrow it down with a severity or a focus."
    return report.model_copy(update={"findings": report.findings[:most], "notes": (*report.notes, note)})
