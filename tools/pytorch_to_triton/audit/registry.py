"""Every rule: one file in rules/ is one rule.

    \"\"\"What is wrong, in one line.

    Why it matters.

    Instead, what to write.
    \"\"\"
    SEVERITY = "critical"
    CATEGORY = "correctness"
    BAD = ("...",)      # each must be found at least once
    GOOD = ("...",)     # each must be found silent

    def check(kernel: Kernel) -> Iterator[Fault]: ...

The annotation of check's one parameter says which evidence it needs: it is called once for each Kernel, once
for the SourceFile, for each CompiledCode, for what was Measured or for what was Timed. BAD and GOOD are files
without their imports, PREAMBLE comes before each; those of a rule that needs more than source declare INPUTS
and `run`, and those of a rule on timings are JSON: one object a size, with the timings by label.

A rule that only suspects also has

    SUSPECTED = "low"                 # its severity until something is measured; SEVERITY where confirmed
    SETTLED_BY = ("out_of_bounds",)   # rules on what was measured that confirm it

Where the kernel was run, a finding of one of those rules at the same line and about the same pointer (or
without a line of its own) confirms the suspicion; it is cleared where every case passed (settle.py).
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, get_args, get_type_hints

from pytorch_to_triton.audit import rules
from pytorch_to_triton.audit.evidence import CompiledCode, Evidence, MeasuredTarget, TimedTarget, pieces
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.source import SourceFile, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Category, EvidenceKind, Finding, Severity

PREAMBLE = "import torch\nimport triton\nimport triton.language as tl\n\n"

KINDS: dict[type[Evidence], EvidenceKind] = {
    SourceFile: "source",
    SourceKernel: "source",
    CompiledCode: "compiled",
    MeasuredTarget: "measured",
    TimedTarget: "measured",
}
"""What a check may ask for, and what its findings rest on."""
_ASKED_FOR = {
    "SEVERITY": f"one of {', '.join(SEVERITIES)}",
    "CATEGORY": f"one of {', '.join(get_args(Category))}",
    "BAD": "a tuple of source snippets",
    "GOOD": "a tuple of source snippets",
    "check": f"a function of one parameter, annotated with {', '.join(kind.__name__ for kind in KINDS)}",
}
_SUSPICION = {
    "SUSPECTED": f"one of {', '.join(SEVERITIES)}",
    "SETTLED_BY": "a tuple of rules' names",
}
"""What a rule has both of, or neither."""


class MalformedRule(Exception):
    """A file in rules/ that is no rule: a defect of this project."""


@dataclass(frozen=True)
class Rule:
    """One rule, as its module defines it."""

    name: str
    """Its module's."""
    about: str
    """The docstring: what is wrong, why it matters, what to write instead."""
    severity: Severity
    """Of what is certain."""
    suspected: Severity | None
    """Of what is not; None: the rule finds only what is certain."""
    settled_by: tuple[str, ...]
    category: Category
    needs: type[Evidence]
    check: Callable[[Any], Iterator[Fault]]
    bad: tuple[str, ...]
    good: tuple[str, ...]

    @property
    def title(self) -> str:
        """What is wrong, in one line."""
        return self.about.partition("\n")[0]

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """Its findings in a file, or in what else it asks for; nothing where it asks for other evidence."""
        for piece in pieces(evidence, self.needs):
            for fault in self.check(piece):
                yield self._finding(fault, piece)

    def _finding(self, fault: Fault, piece: Evidence) -> Finding:
        place = fault.at
        elsewhere, own = (place.file, place.own) if isinstance(place, SourceLine) else (None, True)
        return Finding(
            rule=self.name,
            severity=fault.severity or self.suspected or self.severity,
            suspected=self.suspected is not None,
            category=self.category,
            evidence=KINDS[self.needs],
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


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every file in rules/, by name. Raises MalformedRule."""
    return tuple(
        load(importlib.import_module(f"{rules.__name__}.{module.name}"))
        for module in pkgutil.iter_modules(rules.__path__)
    )


def load(module: ModuleType) -> Rule:
    """The rule that a module defines. Raises MalformedRule, naming its file and all that it lacks."""
    about = inspect.getdoc(module) or ""
    suspicion = _SUSPICION if vars(module).keys() & _SUSPICION.keys() else {}
    missing = [
        f"{name} ({what})"
        for name, what in (_ASKED_FOR | suspicion).items()
        if not _is_sound(name, vars(module).get(name))
    ]
    if not any(paragraph.startswith("Instead") for paragraph in about.split("\n\n")):
        missing.insert(0, "a docstring whose last paragraph starts with Instead")
    if missing:
        raise MalformedRule(f"{module.__file__ or module.__name__} lacks {'; '.join(missing)}.")
    return Rule(
        name=module.__name__.rpartition(".")[2],
        about=about,
        severity=module.SEVERITY,
        suspected=getattr(module, "SUSPECTED", None),
        settled_by=getattr(module, "SETTLED_BY", ()),
        category=module.CATEGORY,
        needs=_evidence(module.check),
        check=module.check,
        bad=module.BAD,
        good=module.GOOD,
    )


def _is_sound(name: str, value: Any) -> bool:
    match name:
        case "SEVERITY" | "SUSPECTED":
            return value in SEVERITIES
        case "CATEGORY":
            return value in get_args(Category)
        case "check":
            return inspect.isfunction(value) and _evidence(value) in KINDS
    return isinstance(value, tuple) and bool(value) and all(isinstance(snippet, str) for snippet in value)


def _evidence(check: Callable[..., object]) -> Any:
    """What the annotation of its one parameter names; None where there is no such thing."""
    parameters = inspect.signature(check).parameters
    return get_type_hints(check).get(next(iter(parameters))) if len(parameters) == 1 else None
