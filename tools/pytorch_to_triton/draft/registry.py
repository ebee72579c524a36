"""The drafting patterns: every file in patterns/, checked when it is loaded, the most particular first."""

import importlib
import pkgutil
from types import ModuleType

from pytorch_to_triton.draft import patterns

NEEDED = {
    "__doc__": "a docstring that says which computation it drafts",
    "match": "match(cluster) -> Mismatch | None",
    "alternatives": "alternatives(cluster) -> tuple[Alternative, ...]",
    "EXAMPLES": "EXAMPLES, functions as text that it must draft",
}
LAST = ("rows", "columns", "window")
"""Patterns that take what others leave, in this order."""


class MalformedPattern(Exception):
    """A file in patterns/ that is no pattern; the message says what it lacks."""


def all_patterns() -> tuple[ModuleType, ...]:
    """Every pattern; a cluster goes to the first that matches it. Raises MalformedPattern."""
    names = sorted(module.name for module in pkgutil.iter_modules(patterns.__path__))
    names.sort(key=lambda n: LAST.index(n) if n in LAST else -1)
    return tuple(checked(importlib.import_module(f"{patterns.__name__}.{name}")) for name in names)


def checked(pattern: ModuleType) -> ModuleType:
    """The module, if it has all that a pattern needs."""
    missing = [what for name, what in NEEDED.items() if not getattr(pattern, name, None)]
    if missing:
        raise MalformedPattern(f"{pattern.__name__} is no drafting pattern: it lacks {'; '.join(missing)}.")
    return pattern


PATTERNS = all_patterns()
