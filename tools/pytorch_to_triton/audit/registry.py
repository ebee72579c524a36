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

The annotation of check's one parameter says which evidence it needs: it is called once for each Kernel, or
once for the SourceFile. BAD and GOOD are files without their imports: PREAMBLE comes before each.
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
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel, SourceFile
from pytorch_to_triton.schema.finding import SEVERITIES, Category, Finding, Severity

PREAMBLE = "import torch\nimport triton\nimport triton.language as tl\n\n"

_ASKED_FOR = {
    "SEVERITY": f"one of {', '.join(SEVERITIES)}",
    "CATEGORY": f"one of {', '.join(get_args(Category))}",
    "BAD": "a tuple of source snippets",
    "GOOD": "a tuple of source snippets",
    "check": "a function of one parameter, annotated with Kernel or SourceFile",
}


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
    category: Category
    needs: type[Kernel] | type[SourceFile]
    check: Callable[[Any], Iterator[Fault]]
    bad: tuple[str, ...]
    good: tuple[str, ...]

    def find(self, file: SourceFile) -> Iterator[Finding]:
        """Its findings in one file."""
        pieces = file.kernels if self.needs is Kernel else (file,)
        for piece in pieces:
            for fault in self.check(piece):
                yield Finding(
                    rule=self.name,
                    severity=self.severity,
                    category=self.category,
                    evidence="source",
                    file=file.path,
                    line=fault.at.lineno,
                    column=fault.at.col_offset + 1,
                    message=fault.message,
                    instead=fault.instead,
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
    lacks = [
        f"{name} ({what})" for name, what in _ASKED_FOR.items() if not _is_sound(name, vars(module).get(name))
    ]
    if not any(paragraph.startswith("Instead") for paragraph in about.split("\n\n")):
        lacks.insert(0, "a docstring whose last paragraph starts with Instead")
    if lacks:
        raise MalformedRule(f"{module.__file__ or module.__name__} lacks {'; '.join(lacks)}.")
    return Rule(
        name=module.__name__.rpartition(".")[2],
        about=about,
        severity=module.SEVERITY,
        category=module.CATEGORY,
        needs=_evidence(module.check),
        check=module.check,
        bad=module.BAD,
        good=module.GOOD,
    )


def _is_sound(name: str, value: Any) -> bool:
    match name:
        case "SEVERITY":
            return value in SEVERITIES
        case "CATEGORY":
            return value in get_args(Category)
        case "check":
            return inspect.isfunction(value) and _evidence(value) in (Kernel, SourceFile)
    return isinstance(value, tuple) and bool(value) and all(isinstance(snippet, str) for snippet in value)


def _evidence(check: Callable[..., object]) -> Any:
    """What the annotation of its one parameter names; None where there is no such thing."""
    parameters = inspect.signature(check).parameters
    return get_type_hints(check).get(next(iter(parameters))) if len(parameters) == 1 else None
