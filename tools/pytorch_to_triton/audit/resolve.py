"""Confirming and clearing suspicions by what runs showed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.schema.finding import SEVERITIES, Finding


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
