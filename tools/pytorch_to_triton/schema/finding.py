"""What an audit found."""

from pathlib import Path
from typing import Literal, get_args

from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.value import Value

Severity = Literal["critical", "high", "medium", "low", "info"]
"""critical: does not compile, cannot be launched, or gives wrong results. high: wrong results under
conditions that occur. medium: costs time or accuracy. low: may do so. info: worth knowing."""
Category = Literal["correctness", "performance", "memory access", "numerical stability", "best practices"]
EvidenceKind = Literal["source", "compiled", "measured"]
"""What a finding rests on. source: the syntax tree; nothing was compiled or run. compiled: what the compiler
made of the kernel for a named GPU; nothing was run. measured: what the kernel did when it ran."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""


class Finding(Value):
    """One fault at one place."""

    rule: str
    """Named after the fault."""
    severity: Severity
    category: Category
    evidence: EvidenceKind
    suspected: bool = False
    """The rule cannot be certain from this evidence alone."""
    file: Path
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    kernel: str = ""
    """The function, most often a kernel, that the line stands in; empty at the top of the file."""
    excerpt: str = ""
    """The line of source."""
    own_line: bool = True
    """The line itself is at fault; else it begins the function that is."""
    pointer: str = ""
    """The pointer that it is about, as the kernel names it; empty: several, or none."""
    message: str
    """What is wrong here, and its consequences."""
    proof: str = ""
    """What was seen, with its figures; empty where the source itself is the evidence."""
    suggestion: str
    """What to write."""
    fix: str = ""
    """Code that can stand in place of the faulty one, where it can be written."""
    page: str = ""
    """Where the rule is explained."""
    fingerprint: str = ""
    """Stays the same while the rule, the file's name and the line's text do."""
    known: bool = False
    """The baseline has it: it does not count against the verdict."""


class Unread(Value):
    """A file that could not be audited."""

    file: Path
    why: str


class Suppressed(Value):
    """A finding that a comment beside the code sets aside."""

    finding: Finding
    reason: str


class CategoryStatus(Value):
    """What an audit found of one category."""

    category: Category
    status: Literal["clean", "nothing found", "worth a look", "faulty"]
    """faulty: a finding at or above `fail_on` that the baseline does not have. nothing found: by reading, or
    by compiling; clean: by running, too."""
    counts: dict[Severity, int]
    """Of its findings, by severity; only those that occur."""


class Recommendation(Value):
    """What to do about all findings of one rule."""

    rule: str
    severity: Severity
    """Of the worst of them."""
    title: str
    """What is wrong, in one line."""
    suggestion: str
    """What to do, as the first finding says it."""
    places: tuple[str, ...]
    """`file.py:12` of each."""


class CompiledFigures(Value):
    """What one kernel occupies, as compiled for one GPU."""

    kernel: str
    where: str
    """`sm_90`, `sm_90 at N=4096` where sizes were named; after a comma an autotuner's configuration."""
    registers: int
    """A thread's."""
    spill_bytes: int
    shared_bytes: int
    """A block's."""
    occupancy: float
    """Warps that stay on an SM, as a share of the maximum."""
    widest_load_bits: int | None
    """A thread's widest instruction that reads global memory; None: there is none."""
    widest_store_bits: int | None


class Examination(Value):
    """One target that was compiled or run, or could not be."""

    target: str
    kind: EvidenceKind
    summary: str
    """The outcome, in a sentence."""
    provenance: str
    """How the figures came about; empty where there are none."""
    replay: str = ""
    """The command that does it again."""


AuditVerdict = Literal["clean", "not run", "faulty"]


class AuditReport(Value):
    """What the rules found in some files."""

    summary: str
    """What a person would say."""
    next_step: str
    verdict: AuditVerdict
    """faulty: a finding is at or above `fail_on`, and the baseline does not have it. not run: there is none,
    and `not_run` names what may still be wrong. clean: there is none, and all kernels were run."""
    date: str
    """ISO 8601, with the time of day in UTC."""
    categories: tuple[CategoryStatus, ...]
    findings: tuple[Finding, ...]
    """By severity, the worst first, then by place."""
    recommendations: tuple[Recommendation, ...]
    """One for each rule, the most important first."""
    files: tuple[Path, ...]
    """What was audited."""
    kernels: int
    """How many @triton.jit functions those files hold."""
    unread: tuple[Unread, ...]
    """Files in the folders that could not be audited."""
    not_run: tuple[Path, ...] = ()
    """Files with kernels that were only read or compiled, or whose run decided nothing."""
    suppressed: tuple[Suppressed, ...] = ()
    examined: tuple[Examination, ...] = ()
    """What was compiled and run; empty: source alone."""
    compiled: tuple[CompiledFigures, ...] = ()
    timings: tuple[Benchmark, ...] = ()
    commands: tuple[str, ...] = ()
    """What runs the audit, the tests and the timings again."""
    fail_on: Severity
    notes: tuple[str, ...] = ()
    document: str = ""
    """The report in the format that was asked for, unless it was written to a file."""
    written: Path | None = None
    """The file that holds the document."""
