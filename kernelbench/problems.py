"""What is drafted and timed. In a KernelBench checkout `level1/19_ReLU.py` is the problem 1/19."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.schema.target import Target

LEVEL = re.compile(r"level(\d+)")
NUMBERED = re.compile(r"(\d+)_\w+")


@dataclass(frozen=True)
class Problem:
    """A file with Model, get_inputs and get_init_inputs; or a function or module of a file."""

    key: str
    """`1/19`, by which records and patterns name it."""
    name: str
    """`19_ReLU`; its drafts are called so."""
    path: Path
    function: str | None = None
    """A function or module class of the file; None: its Model."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """INPUTS and DIMS of that function."""
    backward: bool = False
    """Whether gradients are drafted, checked and timed too."""

    @property
    def group(self) -> str:
        """The level, or what else its key begins with."""
        return self.key.partition("/")[0]

    @property
    def target(self) -> Target:
        return Target(path=self.path, name=self.function)

    def conversion(self, seconds: float) -> ConversionRequest:
        """What `convert` is asked, with the time that one call may take."""
        declared = self.declared
        options = Options(inputs=declared["INPUTS"], dims=declared["DIMS"]) if declared else NO_OPTIONS
        return ConversionRequest(target=self.target, options=options, seconds=seconds, backward=self.backward)

    def as_json(self) -> dict[str, Any]:
        """As check.py and timing.py take it."""
        declared = dict(self.declared)
        return {
            "path": str(self.path),
            "function": self.function,
            "declared": declared,
            "backward": self.backward,
        }


def problems_in(folder: Path) -> list[Problem]:
    """All problems of a checkout, in order; `folder` is the checkout or a folder of it that holds `level1`.

    Raises FileNotFoundError where it holds no level.
    """
    roots = [root for root in (folder, folder / "KernelBench") if any(levels_of(root))]
    if not roots:
        raise FileNotFoundError(f"{folder} holds no level1, level2, ... as a KernelBench checkout does")
    problems = [
        Problem(f"{level}/{match[1]}", file.stem, file.resolve())
        for level, of_level in levels_of(roots[0])
        for file in of_level.glob("*.py")
        if (match := NUMBERED.fullmatch(file.stem))
    ]
    return sorted(problems, key=lambda problem: in_order(problem.key))


def in_order(key: str) -> list[tuple[int, str]]:
    """What keys are sorted by: 1/2 is before 1/10."""
    return [(int(part) if part.isdigit() else 0, part) for part in key.split("/")]


def levels_of(root: Path) -> list[tuple[int, Path]]:
    """The folders `level1`, `level2`, ... with their numbers."""
    return [(int(match[1]), at) for at in root.glob("level*") if (match := LEVEL.fullmatch(at.name))]


def chosen(problems: Sequence[Problem], groups: Collection[str], patterns: Sequence[str]) -> list[Problem]:
    """The problems that a pattern such as `1/19` or `2/*` names; without patterns those of the groups."""
    if patterns:
        return [p for p in problems if any(fnmatchcase(p.key, pattern) for pattern in patterns)]
    return [p for p in problems if p.group in groups]
