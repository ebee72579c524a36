"""The report in SARIF 2.1.0, which code hosts and editors show beside the code."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytorch_to_triton.audit.registry import Rule, all_rules
from pytorch_to_triton.audit.report.markdown import fence_code, paragraph, text
from pytorch_to_triton.audit.report.wording import example_of, paragraphs_of, utc
from pytorch_to_triton.places import version
from pytorch_to_triton.schema.finding import AuditReport, Finding, Severity

ROOT = "SRCROOT"
"""What URIs of files below the root start from."""
FINGERPRINT = "pytorchToTriton/v1"
LEVELS: Mapping[Severity, str] = {
    "critical": "error",
    "high": "error",
    "medium": "warning",
    "low": "note",
    "info": "note",
}
RANKS: Mapping[Severity, float] = {"critical": 100, "high": 80, "medium": 50, "low": 20, "info": 5}
"""SARIF's own scale, which tells apart what shares a level."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PACKAGE = "pytorch-to-triton"
_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")
"""`kernel[grid](x)` would be a link."""
_PLACEHOLDER = re.compile(r"\{(\d+)\}")

Node = dict[str, Any]
"""An object of the document."""


def sarif(report: AuditReport, root: Path) -> str:
    """The document; files below `root`, the folder of the repository, are named from there."""
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report, root)]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _run(report: AuditReport, root: Path) -> Node:
    rules = all_rules()
    return {
        "tool": {"driver": _driver(rules)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": f"{root.absolute().as_uri()}/"}},
        "invocations": [_invocation(report, root)],
        "artifacts": [
            {"location": _file(path, root), "roles": ["analysisTarget"], "sourceLanguage": "python"}
            for path in report.files
        ],
        "results": list(_results(report, rules, root)),
    }


def _driver(rules: Sequence[Rule]) -> Node:
    return {
        "name": _PACKAGE,
        "semanticVersion": version(),
        "rules": [_descriptor(rule) for rule in rules],
    }


def _descriptor(rule: Rule) -> Node:
    title, *rest = paragraphs_of(rule)
    example = example_of(rule)
    shown = [f"**{text(title)}**", *map(paragraph, rest)]
    if example:
        shown.append("\n".join(fence_code(example, "python")))
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("_")),
        "shortDescription": {"text": plain(title)},
        "fullDescription": {"text": plain(" ".join((title, *rest[:1])))},
        "help": {"text": plain("\n\n".join(rest)), "markdown": "\n\n".join(shown)},
        "defaultConfiguration": {"level": LEVELS[rule.suspected or rule.severity]},
        "properties": {
            "category": rule.category,
            "evidence": rule.evidence[0],
            "precision": "very-high" if rule.suspected is None else "medium",
            "tags": ["triton", rule.category, *rule.evidence],
        },
    }


def _invocation(report: AuditReport, root: Path) -> Node:
    notifications = [
        {
            "level": "warning",
            "message": {"text": plain(entry.why)},
            "locations": [_where(_file(entry.file, root))],
        }
        for entry in report.unread
    ]
    notifications += [{"level": "note", "message": {"text": plain(note)}} for note in report.notes]
    return {
        "executionSuccessful": True,
        "endTimeUtc": f"{utc(report.date):%Y-%m-%dT%H:%M:%SZ}",
        "toolExecutionNotifications": notifications,
    }


def _results(report: AuditReport, rules: Sequence[Rule], root: Path) -> Iterator[Node]:
    """SARIF wants suppressions and a state for every result of a run or for none."""
    index = {rule.name: number for number, rule in enumerate(rules)}
    compared = any(finding.known for finding in report.findings)
    reasons = [(finding, None) for finding in report.findings]
    for finding, reason in [*reasons, *((entry.finding, entry.reason) for entry in report.suppressed)]:
        result = _result(finding, root)
        result["suppressions"] = [] if reason is None else [_suppression(reason)]
        if finding.rule in index:
            result["ruleIndex"] = index[finding.rule]
        if compared:
            result["baselineState"] = "unchanged" if finding.known else "new"
        yield result


def _suppression(reason: str) -> Node:
    return {"kind": "inSource", "status": "accepted", "justification": reason}


def _result(finding: Finding, root: Path) -> Node:
    region: Node = {"startLine": finding.line, "startColumn": finding.column}
    if finding.excerpt:
        region["snippet"] = {"text": finding.excerpt}
    location = _where(_file(finding.file, root), region)
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    result: Node = {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "rank": RANKS[finding.severity],
        "message": {"text": plain(f"{finding.message} {finding.suggestion}")},
        "locations": [location],
        "properties": _properties(finding),
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {FINGERPRINT: finding.fingerprint}
    return result


def _properties(finding: Finding) -> Node:
    """What SARIF has no field for; the fix is one, as nobody has tried it yet."""
    properties = finding.model_dump(include={"severity", "category", "evidence", "suspected", "proof", "fix"})
    return {name: value for name, value in properties.items() if value != ""}


def _where(file: Node, region: Node | None = None) -> Node:
    return {"physicalLocation": {"artifactLocation": file} | ({"region": region} if region else {})}


def _file(path: Path, root: Path) -> Node:
    """Relative to the root where it lies below it."""
    base = root.absolute()
    if path.is_relative_to(base):
        return {"uri": quote(path.relative_to(base).as_posix()), "uriBaseId": ROOT}
    return {"uri": path.absolute().as_uri()}


def plain(prose: str) -> str:
    """Prose in which SARIF sees neither a link nor a placeholder."""
    return _PLACEHOLDER.sub(r"{{\1}}", _LINK.sub(r"\[", prose))
