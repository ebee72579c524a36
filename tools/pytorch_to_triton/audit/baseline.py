"""A file of known findings: a team adopts the audit on old code, and only new findings count."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.audit.find_files import relative
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.value import Value

BASELINE_BYTES = 64 << 20
"""Enough for several hundred thousand findings."""


class KnownFinding(Value):
    """One finding in a baseline; everything but the fingerprint is for readers."""

    fingerprint: str
    rule: str
    file: str
    line: int
    excerpt: str


class Baseline(Value):
    """All of them, by file and line."""

    findings: tuple[KnownFinding, ...] = ()


def add_fingerprints(findings: Iterable[Finding], root: Path) -> list[Finding]:
    """Findings whose fingerprints stay the same when lines move.

    They are made of rule, file below `root`, function and the line's text; equal ones are numbered in
    source order.
    """
    seen: Counter[str] = Counter()
    marked: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.file, f.line, f.column)):
        name = relative(finding.file, root)
        core = "\0".join((finding.rule, name, finding.kernel, " ".join(finding.excerpt.split())))
        seen[core] += 1
        digest = hashlib.sha256(f"{core}\0{seen[core]}".encode()).hexdigest()
        marked.append(finding.model_copy(update={"fingerprint": digest[:16]}))
    return marked


def mark_known(findings: Sequence[Finding], baseline: Baseline) -> list[Finding]:
    """The findings, with those in the baseline marked as known."""
    known = {finding.fingerprint for finding in baseline.findings}
    return [f.model_copy(update={"known": True}) if f.fingerprint in known else f for f in findings]


def read_baseline(path: Path) -> Baseline:
    """Raises BadInput where the file is missing or is not a baseline."""
    try:
        return Baseline.model_validate_json(places.read_regular(path, BASELINE_BYTES).decode())
    except OSError as error:
        hint = "Write one with --update-baseline, or leave the baseline out."
        raise BadInput(f"The baseline {path} cannot be read: {error.strerror}.", hint) from error
    except (UnicodeDecodeError, ValidationError) as error:
        hint = "Delete it, then write a new one with --update-baseline."
        raise BadInput(f"{path} is not an audit baseline.", hint) from error


def updated_baseline(before: Baseline, findings: Sequence[Finding], scope: "BaselineScope") -> Baseline:
    """A baseline of these findings; entries for other files and other rules stay."""
    left = [one for one in before.findings if one.rule not in scope.rules or one.file not in scope.files]
    known = [
        KnownFinding(
            fingerprint=finding.fingerprint,
            rule=finding.rule,
            file=relative(finding.file, scope.root),
            line=finding.line,
            excerpt=finding.excerpt,
        )
        for finding in findings
    ]
    return Baseline(findings=tuple(sorted([*left, *known], key=lambda one: (one.file, one.line, one.rule))))


@dataclass(frozen=True)
class BaselineScope:
    """What an audit covered."""

    root: Path
    files: frozenset[str]
    """As a baseline names them."""
    rules: frozenset[str]


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Raises BadInput where the file cannot be written."""
    if path.exists() and not path.is_file():
        # Writing would replace the device by a file.
        raise BadInput(f"{path} cannot be written: it is not a regular file.", "Choose another path.")
    try:
        places.write_atomically(path, baseline.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another path.") from error
