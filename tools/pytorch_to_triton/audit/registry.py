"""Every rule: what the files in rules/ define by decorators, and the rows of tables there (RULES)."""

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from pytorch_to_triton.audit import rules
from pytorch_to_triton.audit.rule import Rule

__all__ = ["Rule", "all_rules", "rules_in"]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by name."""
    modules = pkgutil.iter_modules(rules.__path__)
    tables = (rules_in(importlib.import_module(f"{rules.__name__}.{module.name}")) for module in modules)
    return tuple(sorted((rule for table in tables for rule in table), key=lambda rule: rule.name))


def rules_in(module: ModuleType) -> tuple[Rule, ...]:
    """The rules of a file: those under a decorator of `rule.py`, and the rows of its RULES."""
    decorated = (value for value in vars(module).values() if isinstance(value, Rule))
    return (*decorated, *getattr(module, "RULES", ()))
