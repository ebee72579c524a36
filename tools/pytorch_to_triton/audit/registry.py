"""Every rule: what the files in rules/ define by decorators, and the rows of tables there (RULES)."""

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from pytorch_to_triton.audit import rules
from pytorch_to_triton.audit.rule import Rule
from pytorch_to_triton.errors import Refusal

__all__ = ["Rule", "all_rules", "rules_in"]


class MalformedRule(Refusal):
    """A file in rules/ without a rule: a defect of this project, and its author needs no traceback."""

    exit_code = 5


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name. Raises MalformedRule."""
    modules = pkgutil.iter_modules(rules.__path__)
    tables = (rules_in(importlib.import_module(f"{rules.__name__}.{module.name}")) for module in modules)
    return tuple(sorted((rule for table in tables for rule in table), key=lambda rule: rule.name))


def rules_in(module: ModuleType) -> tuple[Rule, ...]:
    """The rules of a file: those under a decorator of `rule.py`, and the rows of its RULES.

    Raises MalformedRule where it has none.
    """
    decorated = [value for value in vars(module).values() if isinstance(value, Rule)]
    table: tuple[Rule, ...] = (*decorated, *getattr(module, "RULES", ()))
    if not table:
        raise MalformedRule(
            f"{module.__file__ or module.__name__} defines no rule.",
            "Put a function under @kernel_rule or @file_rule, or remove the file; until then no audit runs.",
        )
    return table
