"""The problems of a KernelBench checkout: `level1/19_ReLU.py` is the problem 1/19."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

LEVEL = re.compile(r"level(\d+)")
NUMBERED = re.compile(r"(\d+)_\w+")


@dataclass(frozen=True, order=True)
class Problem:
    """One file with Model, get_inputs and get_init_inputs."""

    level: int
    number: int
    name: str
    """The file's, without its ending: `19_ReLU`."""
    path: Path

    @property
    def key(self) -> str:
        """`1/19`, by which records and patterns name it."""
        return f"{self.level}/{self.number}"


def problems_in(folder: Path) -> list[Problem]:
    """All problems of a checkout, in order; `folder` is the checkout or a folder of it that holds `level1`.

    Raises FileNotFoundError where it holds no level.
    """
    roots = [root for root in (folder, folder / "KernelBench") if any(levels_of(root))]
    if not roots:
        raise FileNotFoundError(f"{folder} holds no level1, level2, ... as a KernelBench checkout does")
    return sorted(
        Problem(level, int(match[1]), file.stem, file.resolve())
        for level, of_level in levels_of(roots[0])
        for file in of_level.glob("*.py")
        if (match := NUMBERED.fullmatch(file.stem))
    )


def levels_of(root: Path) -> list[tuple[int, Path]]:
    """The folders `level1`, `level2`, ... with their numbers."""
    return [(int(match[1]), at) for at in root.glob("level*") if (match := LEVEL.fullmatch(at.name))]


def chosen(problems: Sequence[Problem], levels: Collection[int], patterns: Sequence[str]) -> list[Problem]:
    """The problems that a pattern such as `1/19` or `2/*` names; without patterns those of the levels."""
    if patterns:
        return [p for p in problems if any(fnmatchcase(p.key, pattern) for pattern in patterns)]
    return [p for p in problems if p.level in levels]
