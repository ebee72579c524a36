"""audit: what is wrong with Triton code, by its source, by what compilers make of it, and by running it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from anyio import to_thread

from pytorch_to_triton import places
from pytorch_to_triton.audit.build_report import build_report, deliver
from pytorch_to_triton.audit.examine import (
    Examinations,
    Examiner,
    compile_target,
    declares_inputs,
    run_target,
)
from pytorch_to_triton.audit.find_files import printable
from pytorch_to_triton.audit.read_source import SourceReading, complete, read_all
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.audit.request import AuditPlan, AuditRequest, Choose, make_plan
from pytorch_to_triton.audit.source import SourceFile, parse
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.finding import AuditReport, EvidenceKind, Finding
from pytorch_to_triton.schema.target import Target

__all__ = ["AuditRequest", "audit"]

NO_INPUTS = (
    "Not run: it declares no INPUTS. Declare them in the file or in the request, and name a reference."
)


async def audit(
    worker: WorkerClient, request: AuditRequest, choose: Choose, listener: ProgressListener
) -> AuditReport:
    """Apply the rules to Triton code.

    A named file is always audited; of a folder, every *.py file below it that imports triton. `choose`
    decides the runtime, and is only called where something is run: never with evidence `source`. Raises
    TargetNotFound where a path does not exist, BadInput where a named file is not Python, or a setting, rule
    or baseline cannot be used.
    """
    plan = await to_thread.run_sync(make_plan, request)
    readings = await read_files(plan, listener)
    examined = Examinations()
    targets = await to_thread.run_sync(lambda: list(targets_of(plan, readings, examined)))
    if targets:
        examiner = Examiner(
            worker=worker,
            runtime=await choose(),
            reference=request.reference,
            options=request.options,
            points=request.points,
            archs=plan.archs,
            seconds=request.seconds,
            listener=listener,
        )
        await examine(targets, plan, examiner, examined)
    findings = await to_thread.run_sync(findings_of, examined, readings)
    report = await to_thread.run_sync(build_report, plan, readings, findings, examined)
    return await to_thread.run_sync(deliver, plan, report)


async def read_files(plan: AuditPlan, listener: ProgressListener) -> list[SourceReading]:
    """The findings of the source rules, file by file.

    Raises BadInput for a named file that cannot be read, and where there is nothing to audit. One that is
    nested too deeply is reported as unread where there are others.
    """
    files = (*plan.files.named, *plan.files.found)
    done = 0

    async def report_progress(reading: SourceReading) -> None:
        nonlocal done
        await listener.progress(done, len(files), f"auditing {printable(reading.file).name}")
        done += 1

    readings = await read_all(files, report_progress)
    none_read = all(reading.refusal for reading in readings)
    for reading in readings:
        if reading.refusal and reading.file in plan.files.named and (none_read or not reading.too_deep):
            raise BadInput(reading.refusal, reading.hint)
    kept = [r for r in readings if r.refusal or r.imports_triton or r.file in plan.files.named]
    if not kept:
        below = ", ".join(str(target.path) for target in plan.request.targets)
        hint = "Name the folder that holds the kernels, and look at `exclude` in the project's settings."
        raise BadInput(f"No Python file below {below} imports triton.", hint)
    return kept


def targets_of(
    plan: AuditPlan, readings: Sequence[SourceReading], examined: Examinations
) -> Iterator[Target]:
    """What can be compiled and run; `examined` notes why the rest of what is asked for cannot."""
    request = plan.request
    if request.evidence == "source":
        return
    named: dict[Path, list[Target]] = {}
    for target in request.targets:
        named.setdefault(target.path.resolve(), []).append(target)
    has_inputs = bool(request.reference or request.options.inputs)
    for reading in readings:
        is_named = reading.file in plan.files.named
        if reading.refusal or (request.evidence == "auto" and not is_named):
            continue
        parsed = parsed_or_none(reading.file)
        if parsed and ((is_named and has_inputs) or declares_inputs(parsed)):
            yield from named.get(reading.file, [Target(path=reading.file)])
        elif (is_named or reading.kernels) and request.evidence != "auto":
            examined.note(Target(path=reading.file), "measured", NO_INPUTS)


async def examine(targets: Sequence[Target], plan: AuditPlan, examiner: Examiner, into: Examinations) -> None:
    """Compiles, and where that is asked for runs, the targets."""
    depth: EvidenceKind = "compiled" if plan.request.evidence == "compiled" else "measured"
    for target in targets:
        file = parse(target.path.resolve(), places.read_regular(target.path))
        await compile_target(examiner, target, file, into)
        if depth == "measured":
            await run_target(examiner, target, file, into)


def findings_of(examined: Examinations, readings: Sequence[SourceReading]) -> list[Finding]:
    """All findings: of source, and one per rule and line of what was compiled and run."""
    findings = [
        finding for rule in all_rules() for piece in examined.evidence for finding in rule.find(piece)
    ]
    sources = {path: parsed_or_none(path) for path in {finding.file for finding in findings}}
    whole = [complete(f, source) if (source := sources[f.file]) else f for f in findings]
    of_source = [finding for reading in readings for finding in reading.findings]
    return with_proofs(of_source, merge(whole))


def with_proofs(of_source: Sequence[Finding], shown: Sequence[Finding]) -> list[Finding]:
    """All findings; one that a rule makes in the source and in compiled code takes the proof of the code."""
    proofs = {(finding.rule, finding.file, finding.line): finding for finding in shown}
    findings: list[Finding] = []
    for finding in of_source:
        proof = proofs.get((finding.rule, finding.file, finding.line))
        update = {"evidence": proof.evidence, "proof": proof.proof} if proof else {}
        findings.append(finding.model_copy(update=update))
    known = {(finding.rule, finding.file, finding.line) for finding in of_source}
    return [*findings, *(f for f in shown if (f.rule, f.file, f.line) not in known)]


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """One finding per rule, line and pointer, for all configurations and GPUs that show it."""
    by_place: dict[tuple[str, Path, int, str], Finding] = {}
    for finding in findings:
        place = (finding.rule, finding.file, finding.line, finding.pointer)
        first = by_place.setdefault(place, finding)
        if finding.proof not in first.proof:
            by_place[place] = first.model_copy(update={"proof": f"{first.proof}\n{finding.proof}"})
    return list(by_place.values())


def parsed_or_none(path: Path) -> SourceFile | None:
    """The file as source; None where it cannot be read any more."""
    try:
        return parse(path, places.read_regular(path))
    except (OSError, BadInput):
        return None
