"""The imports of a file that is written, in order."""

import sys
from collections.abc import Iterable


def import_block(lines: Iterable[str]) -> str:
    """Imports in groups: of the future, of the standard library, of others."""
    found = set(lines)
    future = {line for line in found if line.startswith("from __future__ ")}
    standard = {
        line for line in found - future if line.split()[1].partition(".")[0] in sys.stdlib_module_names
    }
    groups = (future, standard, found - future - standard)
    return "\n\n".join("\n".join(in_order(group)) for group in groups if group)


def in_order(lines: Iterable[str]) -> list[str]:
    """`import` before `from`, each by name."""
    return sorted(lines, key=lambda line: (not line.startswith("import "), line))
