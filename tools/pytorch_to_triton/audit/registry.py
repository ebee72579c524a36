"""Every rule. A file in rules/ is one rule, named after the file:

    \"\"\"What is wrong, in one line.

    Why it matters.

    Fix: what to write.
    \"\"\"
    SEVERITY = "critical"
    CATEGORY = "correctness"
    BAD = ("...",)      # each must be found at least once
    GOOD = ("...",)     # in each nothing must be found

    def check(kernel: SourceKernel) -> Iterator[Fault]: ...

or a table: RULES, a tuple of Rule, for rules that only name what was decided elsewhere.

The annotation of check's one parameter says which evidence it needs: it is called once for each SourceKernel,
once for the SourceFile, for each CompiledCode, MeasuredTarget or TimedTarget. BAD and GOOD are files without
their imports, PREAMBLE comes before each; those of a check that needs more than source declare INPUTS and
`run`, and those of a check of timings are JSON: one object per size, with the timings by
label (from_timings.py).

A fault that shows in the source and in the compiled code has two checks: `check`, and `check_compiled` with
BAD_COMPILED and GOOD_COMPILED.

A rule that only suspects also has

    SUSPECTED = "low"                 # its severity until something is measured; SEVERITY where confirmed
    CONFIRMED_BY = ("out_of_bounds",)   # rules on what was measured that confirm it

Where the kernel was run, a finding of one of those rules at the same line and about the same pointer (or
without a line of its own) confirms the suspicion; it is cleared where every case passed (resolve.py).
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, get_args, get_type_hints

from pytorch_to_triton.audit import rules
from pytorch_to_triton.audit.rule import KINDS, Rule, RuleCheck
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.schema.finding import SEVERITIES, Category

__all__ = ["KINDS", "PREAMBLE", "MalformedRule", "Rule", "all_rules", "load"]

PREAMBLE = "import torch\nimport triton\nimport triton.language as tl\n\n"

_EXAMPLES = "a tuple of source snippets"
_CHECK = f"a function of one parameter, annotated with {', '.join(kind.__name__ for kind in KINDS)}"
_REQUIRED = {
    "SEVERITY": f"one of {', '.join(SEVERITIES)}",
    "CATEGORY": f"one of {', '.join(get_args(Category))}",
    "BAD": _EXAMPLES,
    "GOOD": _EXAMPLES,
    "check": _CHECK,
}
_TOGETHER = (
    {"SUSPECTED": f"one of {', '.join(SEVERITIES)}", "CONFIRMED_BY": "a tuple of rules' names"},
    {"check_compiled": _CHECK, "BAD_COMPILED": _EXAMPLES, "GOOD_COMPILED": _EXAMPLES},
)
"""What a rule has all of, or nothing."""


class MalformedRule(Refusal):
    """A file in rules/ that is no rule: a defect of this project, and its author needs no traceback."""

    exit_code = 5


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name. Raises MalformedRule."""
    modules = pkgutil.iter_modules(rules.__path__)
    found = (rules_in(importlib.import_module(f"{rules.__name__}.{module.name}")) for module in modules)
    return tuple(sorted((rule for those in found for rule in those), key=lambda rule: rule.name))


def rules_in(module: ModuleType) -> tuple[Rule, ...]:
    """The rows of a table, or the one rule that a module defines. Raises MalformedRule."""
    table: tuple[Rule, ...] | None = getattr(module, "RULES", None)
    return (load(module),) if table is None else table


def load(module: ModuleType) -> Rule:
    """The rule that a module defines. Raises MalformedRule, naming its file and all that is missing."""
    about = inspect.getdoc(module) or ""
    optional = [names for names in _TOGETHER if vars(module).keys() & names.keys()]
    missing = [
        f"{name} ({what})"
        for names in (_REQUIRED, *optional)
        for name, what in names.items()
        if not _is_sound(name, vars(module).get(name))
    ]
    if not any(paragraph.startswith("Fix: ") for paragraph in about.split("\n\n")):
        missing.insert(0, "a docstring whose last paragraph starts with Fix:")
    if missing:
        raise MalformedRule(
            f"{module.__file__ or module.__name__}: missing are {'; '.join(missing)}.",
            "Complete the rule, or remove its file; until then no audit runs.",
        )
    return Rule(
        name=module.__name__.rpartition(".")[2],
        about=about,
        severity=module.SEVERITY,
        category=module.CATEGORY,
        checks=tuple(_checks(module)),
        suspected=getattr(module, "SUSPECTED", None),
        confirmed_by=getattr(module, "CONFIRMED_BY", ()),
    )


def _checks(module: ModuleType) -> Iterator[RuleCheck]:
    yield RuleCheck(_evidence(module.check), module.check, module.BAD, module.GOOD)
    if run := getattr(module, "check_compiled", None):
        yield RuleCheck(_evidence(run), run, module.BAD_COMPILED, module.GOOD_COMPILED)


def _is_sound(name: str, value: Any) -> bool:
    match name:
        case "SEVERITY" | "SUSPECTED":
            return value in SEVERITIES
        case "CATEGORY":
            return value in get_args(Category)
        case "check" | "check_compiled":
            return inspect.isfunction(value) and _evidence(value) in KINDS
    return isinstance(value, tuple) and bool(value) and all(isinstance(snippet, str) for snippet in value)


def _evidence(check: Callable[..., object]) -> Any:
    """What the annotation of its one parameter names; None where there is no such thing."""
    parameters = inspect.signature(check).parameters
    return get_type_hints(check).get(next(iter(parameters))) if len(parameters) == 1 else None
