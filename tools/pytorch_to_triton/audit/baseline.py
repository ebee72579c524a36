"""A file of findings that are known: a team adopts the audit on old code, and only new findings count."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.value import Value

BASELINE_BYTES = 64 << 20
"""Of some hundred thousand findings."""


class Known(Value):
    """One finding that a baseline holds; what is beside the fingerprint is for people."""

    fingerprint: str
    rule: str
    file: str
    line: int
    excerpt: str


class Baseline(Value):
    """All of them, by file and line."""

    findings: tuple[Known, ...] = ()


def with_fingerprints(findings: Iterable[Finding], root: Path) -> list[Finding]:
    """Findings whose fingerprints stay the same when lines move.

    They are made of rule, file below `root`, function and the line's text; equal ones are numbered in
    source order.
    """
    seen: Counter[str] = Counter()
    told: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.file, f.line, f.column)):
        name = name_of(finding.file, root)
        core = "\0".join((finding.rule, name, finding.kernel, " ".join(finding.excerpt.split())))
        seen[core] += 1
        digest = hashlib.sha256(f"{core}\0{seen[core]}".encode()).hexdigest()
        told.append(finding.model_copy(update={"fingerprint": digest[:16]}))
    return told


def marked(findings: Sequence[Finding], baseline: Baseline) -> list[Finding]:
    """The findings, those that the baseline holds marked as known."""
    known = {one.fingerprint for one in baseline.findings}
    return [f.model_copy(update={"known": True}) if f.fingerprint in known else f for f in findings]


def read_baseline(path: Path) -> Baseline:
    """Raises BadInput where the file is not there or is none."""
    try:
        return Baseline.model_validate_json(places.read_regular(path, BASELINE_BYTES).decode())
    except OSError as error:
        hint = "Write one with --update-baseline, or leave the baseline out."
        raise BadInput(f"The baseline {path} cannot be read: {error.strerror}.", hint) from error
    except (UnicodeDecodeError, ValidationError) as error:
        hint = "Delete it, then write it anew with --update-baseline."
        raise BadInput(f"{path} is not a baseline of an audit.", hint) from error


def updated(before: Baseline, findings: Sequence[Finding], looked_at: "LookedAt") -> Baseline:
    """A baseline of these findings; what it held of other files and of other rules stays."""
    left = [
        one for one in before.findings if one.rule not in looked_at.rules or one.file not in looked_at.files
    ]
    known = [
        Known(
            fingerprint=finding.fingerprint,
            rule=finding.rule,
            file=name_of(finding.file, looked_at.root),
            line=finding.line,
            excerpt=finding.excerpt,
        )
        for finding in findings
    ]
    return Baseline(findings=tuple(sorted([*left, *known], key=lambda one: (one.file, one.line, one.rule))))


@dataclass(frozen=True)
class LookedAt:
    """What an audit was about."""

    root: Path
    files: frozenset[str]
    """As a baseline names them."""
    rules: frozenset[str]


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Raises BadInput where the file cannot be written."""
    write_asked(path, baseline.model_dump_json(indent=1) + "\n")


def write_asked(path: Path, text: str) -> None:
    """Writes a file that the caller named. Raises BadInput where it cannot be written."""
    if path.exists() and not path.is_file():
        # A file would take the place of the device.
        raise BadInput(f"{path} cannot be written: it is not a regular file.", "Name a file that can be.")
    try:
        places.write_atomically(path, text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Name a file that can be.") from error


def name_of(file: Path, root: Path) -> str:
    """A file's path below `root`, with slashes; its whole path where it lies elsewhere."""
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()
