"""A kernel file in its parts, as it is drafted and as a finished file takes it over."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

DEFINING = ("def ", "class ", "@")


@dataclass(frozen=True)
class KernelText:
    """What stands in a kernel file, from top to bottom."""

    first: str
    """The docstring's first line."""
    shapes: str
    """The docstring without its first line."""
    imports: Iterable[str]
    body: str
    """All behind the imports."""
    limits: tuple[str, ...] = ()
    """Conditions on sizes without which `run` refuses a call: of a file that somebody wrote, its REQUIRES."""

    @property
    def text(self) -> str:
        """The whole file."""
        head = f'"""{self.first}\n\n{self.shapes}\n"""\n\n{import_block(self.imports)}'
        between = "\n\n\n" if self.body.startswith(DEFINING) else "\n\n"
        return f"{head}{between}{self.body}\n"


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
