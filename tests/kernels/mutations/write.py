"""Kernels that are another one with a few passages changed: one table, NAME.toml, for each base.

python tests/kernels/mutations/write.py wrong/drops_tail > drops_tail.py
"""

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

Change = tuple[str, str]

TABLES = Path(__file__).parent
VERBS = {"wrong": "Wrong", "cheating": "Cheats", "honest": "Honest"}
"""How the docstring of a kernel begins, by its folder."""


@dataclass(frozen=True)
class Mutation:
    """A kernel of one of the folders beside this one, whose file is not kept."""

    folder: str
    base: Path
    does: str
    changes: tuple[Change, ...]

    def text(self) -> str:
        docstring = f'"""{VERBS[self.folder]}: {self.does}"""'
        text = re.sub(r'\A""".*?"""', lambda _: docstring, self.base.read_text(), count=1, flags=re.DOTALL)
        return changed(text, *self.changes)


def mutations() -> dict[str, Mutation]:
    """All of them by name, such as `wrong/drops_tail`."""
    every = {}
    for file in sorted(TABLES.glob("*.toml")):
        table = tomllib.loads(file.read_text())
        base = TABLES.parent / f"{table.pop('base')}.py"
        for folder, rows in table.items():
            for name, row in rows.items():
                changes = tuple((before, after) for before, after in row["changes"])
                every[f"{folder}/{name}"] = Mutation(folder, base, row["does"], changes)
    return every


def changed(text: str, *changes: Change) -> str:
    """The text with each first passage replaced by the second, each of which must be there once."""
    for before, after in changes:
        assert text.count(before) == 1, f"{before!r} is there {text.count(before)} times"
        text = text.replace(before, after)
    return text


if __name__ == "__main__":
    print(mutations()[sys.argv[1]].text(), end="")
