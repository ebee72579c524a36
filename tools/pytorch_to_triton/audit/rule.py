"""What a rule is. On source it is a function under `kernel_rule` or `file_rule`:

    @kernel_rule("critical", "correctness", BAD, GOOD)
    def block_not_power_of_two(kernel: SourceKernel) -> Iterator[Fault]:
        \"\"\"What is wrong, in one line.

        Why it matters.

        Fix: what to write.
        \"\"\"

BAD and GOOD are files without their imports, PREAMBLE comes before each; those of a check that needs more
than source declare INPUTS and `run`, and those of a check of timings are JSON (from_timings.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Generic, TypeVar

from pytorch_to_triton.audit.evidence import CompiledCode, Evidence, MeasuredTarget, TimedTarget, pieces
from pytorch_to_triton.audit.fault import Fault, Node, SourceLine
from pytorch_to_triton.audit.source import SourceFile, SourceKernel
from pytorch_to_triton.schema.compiled import RemarkKind
from pytorch_to_triton.schema.finding import Category, EvidenceKind, Finding, Severity

PREAMBLE = "import torch\nimport triton\nimport triton.language as tl\n\n"

KINDS: dict[type[Evidence], EvidenceKind] = {
    SourceFile: "source",
    SourceKernel: "source",
    CompiledCode: "compiled",
    MeasuredTarget: "measured",
    TimedTarget: "measured",
}
"""What a check may ask for, and what its findings rest on."""

Sought = TypeVar("Sought", SourceFile, SourceKernel, CompiledCode, MeasuredTarget, TimedTarget)


@dataclass(frozen=True)
class RuleCheck:
    """How a rule looks at one kind of evidence, with examples of that kind."""

    needs: type[Evidence]
    run: Callable[[Any], Iterator[Fault]]
    bad: tuple[str, ...]
    """Each must be found at least once."""
    good: tuple[str, ...] = ()
    """In each nothing must be found."""


@dataclass(frozen=True)
class Unconfirmed:
    """What a rule that is not always certain says until a run decides.

    Where the kernel was run, a finding of a confirming rule at the same line and about the same pointer (or
    without a line of its own) confirms the suspicion; it is cleared where every case passed (resolve.py).
    """

    severity: Severity
    confirmed_by: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """One rule: a fault that an audit finds."""

    name: str
    about: str
    """Three paragraphs or more: what is wrong, why it matters, and how to fix it."""
    severity: Severity
    """Of what is certain."""
    category: Category
    checks: tuple[RuleCheck, ...]
    """One for each kind of evidence that shows the fault; that on source comes first."""
    suspicion: Unconfirmed | None = None
    """None: the rule finds only what is certain."""

    @property
    def suspected(self) -> Severity | None:
        """The severity of what is not certain."""
        return self.suspicion.severity if self.suspicion else None

    @property
    def confirmed_by(self) -> tuple[str, ...]:
        """Rules on what was measured that confirm what is suspected."""
        return self.suspicion.confirmed_by if self.suspicion else ()

    @property
    def title(self) -> str:
        """What is wrong, in one line."""
        return self.about.partition("\n")[0]

    @property
    def needs(self) -> type[Evidence]:
        """The evidence of its first check."""
        return self.checks[0].needs

    @property
    def bad(self) -> tuple[str, ...]:
        """Examples of its first check."""
        return self.checks[0].bad

    @property
    def evidence(self) -> tuple[EvidenceKind, ...]:
        """All kinds of evidence that show the fault."""
        return tuple(dict.fromkeys(KINDS[check.needs] for check in self.checks))

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """Its findings in a file, or in other evidence; nothing where no check asks for such evidence.

        Of several faults of one expression or statement, the first.
        """
        for check in self.checks:
            for piece in pieces(evidence, check.needs):
                reported: set[Node | SourceLine] = set()
                for fault in check.run(piece):
                    if isinstance(fault.at, SourceLine) or fault.at not in reported:
                        reported.add(fault.at)
                        yield self._finding(fault, piece, KINDS[check.needs])

    def _finding(self, fault: Fault, piece: Evidence, kind: EvidenceKind) -> Finding:
        place = fault.at
        elsewhere, own = (place.file, place.own) if isinstance(place, SourceLine) else (None, True)
        suspected = None if fault.certain else self.suspected
        return Finding(
            rule=self.name,
            severity=fault.severity or suspected or self.severity,
            suspected=suspected is not None,
            category=self.category,
            evidence=kind,
            file=elsewhere or piece.path,
            line=place.lineno,
            column=place.col_offset + 1,
            own_line=own,
            pointer=fault.pointer,
            message=fault.message,
            suggestion=fault.suggestion,
            fix=fault.fix,
            proof=fault.proof,
        )


@dataclass(frozen=True)
class RuleDecorator(Generic[Sought]):
    """Makes a function over such evidence the rule of its name; its docstring is what the rule says."""

    needs: type[Sought]

    def __call__(
        self,
        severity: Severity,
        category: Category,
        bad: tuple[str, ...],
        good: tuple[str, ...],
        *,
        suspected: Unconfirmed | None = None,
        also: RuleCheck | None = None,
    ) -> Callable[[Callable[[Sought], Iterator[Fault]]], Rule]:
        """`also` looks at other evidence for the same fault."""

        def decorate(check: Callable[[Sought], Iterator[Fault]]) -> Rule:
            checks = (RuleCheck(self.needs, check, bad, good), *([also] if also else []))
            return Rule(check.__name__, cleandoc(check.__doc__ or ""), severity, category, checks, suspected)

        return decorate


kernel_rule = RuleDecorator(SourceKernel)
file_rule = RuleDecorator(SourceFile)
compiled_rule = RuleDecorator(CompiledCode)
measured_rule = RuleDecorator(MeasuredTarget)
timed_rule = RuleDecorator(TimedTarget)


def remark_check(
    kind: RemarkKind, message: str, suggestion: str, bad: tuple[str, ...], good: tuple[str, ...]
) -> RuleCheck:
    """Reports a remark of `inspect` on compiled code; the message may hold {kernel} and {precision}."""
    return RuleCheck(CompiledCode, lambda code: code.faults(kind, message, suggestion), bad, good)


def about(title: str, why: str, fix: str) -> str:
    """What a row of a table says of its rule, in the form of a rule's docstring."""
    return f"{title}\n\n{why}\n\nFix: {fix[0].lower()}{fix[1:]}"
