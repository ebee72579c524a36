"""The conclusions from findings: what runs decide, counts, recommendations, summary and next step."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.command_line import typed
from pytorch_to_triton.schema.finding import (
    SEVERITIES,
    Category,
    CategoryStatus,
    Finding,
    Recommendation,
    Severity,
)
from pytorch_to_triton.validate.host_code import is_of_gradients


@dataclass(frozen=True)
class FileRun:
    """A file whose kernels were run."""

    idle: frozenset[str]
    """Its functions that certainly did not take part."""
    clean: bool
    """Every case of every target passed."""


@dataclass(frozen=True)
class ResolvedFindings:
    """Findings after taking runs into account."""

    findings: tuple[Finding, ...]
    cleared: tuple[Finding, ...]
    """Suspicions that the runs would have confirmed, but did not."""


def resolve(
    findings: Sequence[Finding], rules: Sequence[Rule], ran: Mapping[Path, FileRun]
) -> ResolvedFindings:
    """The findings with suspicions confirmed or cleared, in functions that took part in a run.

    A measured finding confirms the suspicions at its own line about the same pointer; where it has no line
    of its own, the one in its file, if there is just one that it can mean. They take over its evidence, and
    it is not listed again. Where every case passed, suspicions are cleared.
    """
    confirmable = {rule.name: rule for rule in rules if rule.confirmed_by}
    open_ones = [
        finding
        for finding in findings
        if finding.suspected and finding.rule in confirmable and finding.file in ran
        if finding.kernel not in ran[finding.file].idle
    ]
    proofs: dict[Finding, Finding] = {}
    for proof in (finding for finding in findings if finding.evidence == "measured"):
        meant = [finding for finding in open_ones if _confirms(proof, finding, confirmable[finding.rule])]
        if proof.own_line or len(meant) == 1:
            for finding in meant:
                proofs.setdefault(finding, proof)
    cleared = [finding for finding in open_ones if finding not in proofs and ran[finding.file].clean]
    remaining = [
        _confirm(finding, proofs[finding], confirmable[finding.rule]) if finding in proofs else finding
        for finding in findings
        if finding not in cleared and not _is_covered(finding, proofs)
    ]
    return ResolvedFindings(tuple(remaining), tuple(cleared))


def _is_covered(proof: Finding, proofs: Mapping[Finding, Finding]) -> bool:
    """Whether confirmed suspicions cover a finding: one on two pointers needs both."""
    covered = [finding for finding, confirming in proofs.items() if confirming == proof]
    return bool(covered) and _pointers(proof) <= {name for one in covered for name in _pointers(one)}


def _pointers(finding: Finding) -> set[str]:
    return set(filter(None, finding.pointer.split(", ")))


def _confirms(proof: Finding, finding: Finding, rule: Rule) -> bool:
    if proof.rule not in rule.confirmed_by or proof.file != finding.file:
        return False
    mine, seen = _pointers(finding), _pointers(proof)
    return not proof.own_line or (proof.line == finding.line and (not mine or not seen or bool(mine & seen)))


def _confirm(finding: Finding, proof: Finding, rule: Rule) -> Finding:
    worse = min(rule.severity, proof.severity, key=SEVERITIES.index)
    return finding.model_copy(
        update={
            "severity": worse,
            "suspected": False,
            "evidence": "measured",
            "proof": f"{proof.message} {proof.proof}".strip(),
        }
    )


ONCE_A_FOLDER = frozenset({"incomplete_kernel_file"})
"""Rules on what files lack: what is done about one file is mostly done about those beside it."""
_FILES_NAMED = 10


def once_a_folder(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with one for all files of a folder, at the first, where the rule is one of these."""
    kept = [finding for finding in findings if finding.rule not in ONCE_A_FOLDER]
    by_folder: dict[tuple[str, Path], list[Finding]] = {}
    for finding in sorted((f for f in findings if f.rule in ONCE_A_FOLDER), key=lambda f: (f.file, f.line)):
        by_folder.setdefault((finding.rule, finding.file.parent), []).append(finding)
    return kept + [_with_others(first, others) for first, *others in by_folder.values()]


def _with_others(first: Finding, others: Sequence[Finding]) -> Finding:
    if not others:
        return first
    names = [finding.file.name for finding in others]
    beyond = [f"and {len(names) - _FILES_NAMED} more"] if len(names) > _FILES_NAMED else []
    listed = ", ".join([*names[:_FILES_NAMED], *beyond])
    also = (
        f"{count_of(len(names), 'more file')} of its folder {'is' if len(names) == 1 else 'are'} incomplete"
    )
    return first.model_copy(update={"message": f"{first.message} {also}, too: {listed}."})


def rank(findings: Sequence[Finding]) -> list[Finding]:
    """The worst first; certain ones before suspected ones; then by place."""
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


def statuses(
    findings: Sequence[Finding], fail_on: Severity, not_run: Sequence[Path]
) -> tuple[CategoryStatus, ...]:
    """One per category, in the order of Category."""
    results = []
    for category in get_args(Category):
        own = [finding for finding in findings if finding.category == category]
        counts = Counter(finding.severity for finding in own)
        empty: Literal["nothing found", "clean"] = "nothing found" if not_run else "clean"
        results.append(
            CategoryStatus(
                category=category,
                status="faulty" if failing(own, fail_on) else "worth a look" if own else empty,
                counts={severity: counts[severity] for severity in SEVERITIES if counts[severity]},
            )
        )
    return tuple(results)


def recommendations(
    findings: Sequence[Finding], rules: Sequence[Rule], root: Path
) -> tuple[Recommendation, ...]:
    """One per rule: by its worst finding, then by how many there are. Known findings are left out."""
    titles = {rule.name: rule.title for rule in rules}
    by_rule: dict[str, list[Finding]] = {}
    for finding in rank([finding for finding in findings if not finding.known]):
        by_rule.setdefault(finding.rule, []).append(finding)
    advice = [
        Recommendation(
            rule=name,
            severity=own[0].severity,
            title=titles.get(name, name),
            suggestion=own[0].suggestion,
            places=tuple(f"{relative(f.file, root)}:{f.line}" for f in own),
        )
        for name, own in by_rule.items()
    ]
    return tuple(sorted(advice, key=lambda one: (SEVERITIES.index(one.severity), -len(one.places), one.rule)))


@dataclass(frozen=True)
class AuditScope:
    """What was audited, and by which evidence."""

    kernels: int
    files: int
    unread: int
    not_run: tuple[Path, ...]
    """Files with kernels that no run has shown to be right or wrong."""
    run_alone: frozenset[Path]
    """Those of them that hold a reference too."""
    is_compiled: bool
    idle: Mapping[Path, frozenset[str]]
    """Of files whose runs were all right, the kernels that no run launched."""

    @property
    def proviso(self) -> str:
        """The limits of the verdict; empty where all kernels were run."""
        if not self.not_run:
            return ""
        if set(self.not_run) <= self.idle.keys():
            names = sorted(name for file in self.not_run for name in self.idle[file])
            them = "it" if len(names) == 1 else "they"
            return f" No run launched {', '.join(names)}: {them} may still be wrong."
        done = "run" if self.is_compiled else "compiled or run"
        if len(self.not_run) == self.files:
            return f" Nothing was {done}: the code may still be wrong."
        one = len(self.not_run) == 1
        left = f"{len(self.not_run)} of {self.files} files {'was' if one else 'were'} not {done}"
        return f" {left}: {'it' if one else 'they'} may still be wrong."


def summary_of(findings: Sequence[Finding], scope: AuditScope) -> str:
    """How many findings, in how much code, and what was not run."""
    counts = Counter(finding.severity for finding in findings)
    by_severity = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity])
    where = f"{count_of(scope.kernels, 'Triton function')} in {count_of(scope.files, 'file')}"
    count = f"{count_of(len(findings), 'finding')} ({by_severity})" if findings else "No findings"
    known = sum(finding.known for finding in findings)
    old = f" {known} of them {'is' if known == 1 else 'are'} in the baseline." if known else ""
    left = f" {count_of(scope.unread, 'file')} could not be read." if scope.unread else ""
    return f"{count} in {where}.{old}{left}{scope.proviso}"


def next_step_of(findings: Sequence[Finding], fail_on: Severity, scope: AuditScope, root: Path) -> str:
    """What to do first."""
    new = [finding for finding in findings if not finding.known]
    if new and (failing(new, fail_on) or not scope.not_run):
        first = new[0]
        return f"Fix {relative(first.file, root)}:{first.line} first: {first.suggestion}"
    if not scope.kernels:
        return "Name files that define @triton.jit functions."
    if scope.not_run:
        first_file, *others = scope.not_run
        validate = typed("validate", first_file)
        beside = "" if first_file in scope.run_alone else ":FUNCTION --reference FILE.py:FUNCTION"
        if any(map(is_of_gradients, scope.idle.get(first_file, ()))):
            beside += " --backward"
        return f"Run it: {validate}{beside}" + f" (and {len(others)} more)" * bool(others)
    if findings:
        return "No new findings; fix those in the baseline when there is time."
    return "Nothing to fix. Benchmark the kernel to see how close it comes to the GPU's limit."


def count_of(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
