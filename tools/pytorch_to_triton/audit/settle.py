"""What a run says to what source only suspects."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.audit.registry import Rule
from pytorch_to_triton.schema.finding import SEVERITIES, Finding


@dataclass(frozen=True)
class Settled:
    """Findings after what was measured."""

    findings: tuple[Finding, ...]
    cleared: tuple[Finding, ...]
    """Suspicions that a run would have confirmed, and did not."""


def settled(findings: Sequence[Finding], rules: Sequence[Rule], clean: Sequence[Path]) -> Settled:
    """The findings with suspicions confirmed or cleared.

    clean: files that were run and passed every case. A finding on what was measured confirms the suspicions
    that it settles at its own line, or in another function where it names no access: they take its evidence,
    and what stands at the same line is not told twice. In clean files suspicions are cleared.
    """
    settling = {rule.name: rule for rule in rules if rule.settled_by}
    measured = [finding for finding in findings if finding.evidence == "measured"]
    told: list[Finding] = []
    cleared: list[Finding] = []
    absorbed: list[Finding] = []
    for finding in findings:
        rule = settling.get(finding.rule) if finding.suspected else None
        proof = next((one for one in measured if rule and _confirms(one, finding, rule)), None)
        if rule and proof:
            told.append(_confirmed(finding, proof, rule))
            absorbed += [proof] if proof.line == finding.line else []
        elif rule and finding.file in clean:
            cleared.append(finding)
        else:
            told.append(finding)
    return Settled(tuple(one for one in told if one not in absorbed), tuple(cleared))


def _confirms(proof: Finding, finding: Finding, rule: Rule) -> bool:
    if proof.rule not in rule.settled_by or proof.file != finding.file:
        return False
    return proof.line == finding.line or proof.kernel != finding.kernel


def _confirmed(finding: Finding, proof: Finding, rule: Rule) -> Finding:
    worse = min(rule.severity, proof.severity, key=SEVERITIES.index)
    return finding.model_copy(
        update={
            "severity": worse,
            "suspected": False,
            "evidence": "measured",
            "proof": f"{proof.message} {proof.proof}".strip(),
        }
    )
