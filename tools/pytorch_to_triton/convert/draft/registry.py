"""The drafting patterns: every file in patterns/, checked when it is loaded."""

import importlib
import pkgutil
from types import ModuleType

from pytorch_to_triton.convert.draft import patterns

NEEDED = {
    "__doc__": "a docstring that says which computation it drafts",
    "match": "match(nest) -> Misfit | None",
    "write": "write(plan, stage) -> Kernel",
    "EXAMPLES": "EXAMPLES, functions as text that it must draft",
}


class MalformedPattern(Exception):
    """A file in patterns/ that is no pattern; the message says what it lacks."""


def all_patterns() -> tuple[ModuleType, ...]:
    """Every pattern, by file name; a group goes to the first that matches it. Raises MalformedPattern."""
    names = sorted(module.name for module in pkgutil.iter_modules(patterns.__path__))
    return tuple(checked(importlib.import_module(f"{patterns.__name__}.{name}")) for name in names)


def checked(pattern: ModuleType) -> ModuleType:
    """The module, if it has all that a pattern needs."""
    missing = [what for name, what in NEEDED.items() if not getattr(pattern, name, None)]
    if missing:
        raise MalformedPattern(f"{pattern.__name__} is no drafting pattern: it lacks {'; '.join(missing)}.")
    return pattern


PATTERNS = all_patterns()
