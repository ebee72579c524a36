"""Audit Triton code: find its files, hold every rule against them, and say what came of it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from anyio import to_thread

from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.audit.source import SourceFile, parse
from pytorch_to_triton.errors import BadInput, TargetNotFound
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.finding import (
    SEVERITIES,
    AuditReport,
    Category,
    Finding,
    Severity,
    Unread,
)


async def audit(
    paths: Sequence[Path], watch: Watch, *, focus: Category | None = None, fail_on: Severity = "medium"
) -> AuditReport:
    """Hold every rule (of the category `focus`, where given) against Triton code.

    A file is audited as it is, a folder for every *.py file below it that imports triton. Nothing is
    executed. Raises TargetNotFound where a path does not exist, BadInput where a named file is not Python.
    """
    rules = [rule for rule in all_rules() if focus in (None, rule.category)]
    named, found = await to_thread.run_sync(_files, paths)
    findings: list[Finding] = []
    audited: list[SourceFile] = []
    unread: list[Unread] = []
    for done, path in enumerate((*named, *found)):
        await watch.progress(done, len(named) + len(found), f"auditing {path.name}")
        try:
            file = await to_thread.run_sync(_read, path)
        except BadInput as refusal:
            if path in named:
                raise
            unread.append(Unread(file=path, why=refusal.message))
            continue
        if path in named or file.imports_triton:
            audited.append(file)
            findings += await to_thread.run_sync(_findings, file, rules)
    return _report(findings, audited, unread, fail_on)


def _files(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files that are named, and those in the folders that are named; each once."""
    named: dict[Path, None] = {}
    found: dict[Path, None] = {}
    for path in paths:
        whole = path.absolute()
        if whole.is_dir():
            found.update(dict.fromkeys(_below(whole)))
        elif whole.is_file():
            named[whole] = None
        else:
            raise TargetNotFound(f"{path} does not exist.", "Name Python files, or folders that hold them.")
    return list(named), [path for path in found if path not in named]


def _below(folder: Path) -> Iterator[Path]:
    """The *.py files in a folder and below, but for those in hidden folders and virtual environments."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and not Path(place, name, "pyvenv.cfg").exists()
        )
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))


def _read(path: Path) -> SourceFile:
    try:
        return parse(path, path.read_bytes())
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror}.", "Name files that you may read."
        ) from error


def _findings(file: SourceFile, rules: Sequence[Rule]) -> list[Finding]:
    return [finding for rule in rules for finding in rule.find(file)]


def _report(
    findings: Sequence[Finding], audited: Sequence[SourceFile], unread: Sequence[Unread], fail_on: Severity
) -> AuditReport:
    ranked = sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.file, f.line, f.column, f.rule))
    failing = [f for f in ranked if SEVERITIES.index(f.severity) <= SEVERITIES.index(fail_on)]
    kernels = sum(len(file.kernels) for file in audited)
    return AuditReport(
        summary=_summary(ranked, kernels, audited, unread),
        next_step=_next_step(ranked, kernels),
        verdict="faulty" if failing else "clean",
        findings=tuple(ranked),
        files=tuple(file.path for file in audited),
        kernels=kernels,
        unread=tuple(unread),
        fail_on=fail_on,
    )


def _summary(
    findings: Sequence[Finding], kernels: int, audited: Sequence[SourceFile], unread: Sequence[Unread]
) -> str:
    counts = [(severity, sum(f.severity == severity for f in findings)) for severity in SEVERITIES]
    told = ", ".join(f"{count} {severity}" for severity, count in counts if count)
    where = f"{_counted(kernels, 'Triton function')} in {_counted(len(audited), 'file')}"
    found = f"{_counted(len(findings), 'finding')} ({told})" if findings else "No findings"
    left = f" {_counted(len(unread), 'file')} could not be read." if unread else ""
    return f"{found} in {where}.{left}"


def _next_step(findings: Sequence[Finding], kernels: int) -> str:
    if findings:
        first = findings[0]
        return f"Mend {first.file}:{first.line} first: {first.instead}"
    if not kernels:
        return "Name files that define @triton.jit functions."
    return (
        "The source has none of the faults that the rules know; validate tells whether the kernel is right."
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
