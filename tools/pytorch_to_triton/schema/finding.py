"""What an audit found."""

from pathlib import Path
from typing import Literal, get_args

from pytorch_to_triton.schema.value import Value

Severity = Literal["critical", "high", "medium", "low", "info"]
"""critical: does not compile, cannot be launched, or gives wrong results. high: wrong results under
conditions that occur. medium: costs time or accuracy. low: may do so. info: worth knowing."""
Category = Literal["correctness", "performance", "memory access", "numerical stability", "best practices"]
Evidence = Literal["source"]
"""source: the syntax tree alone; nothing was compiled or run."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""


class Finding(Value):
    """One fault at one place."""

    rule: str
    """Named after the fault."""
    severity: Severity
    category: Category
    evidence: Evidence
    """What the finding rests on."""
    file: Path
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    message: str
    """What is wrong here, and what comes of it."""
    instead: str
    """What to write."""


class Unread(Value):
    """A file that could not be audited."""

    file: Path
    why: str


class AuditReport(Value):
    """What the rules found in some files."""

    summary: str
    """What a person would say."""
    next_step: str
    verdict: Literal["clean", "faulty"]
    """faulty: a finding is at or above `fail_on`."""
    findings: tuple[Finding, ...]
    """By severity, the worst first, then by place."""
    files: tuple[Path, ...]
    """What was audited."""
    kernels: int
    """How many @triton.jit functions those files hold."""
    unread: tuple[Unread, ...]
    """Files in the folders that could not be audited."""
    fail_on: Severity
