"""The source of a file in stretches of lines, with the findings that stand below each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pytorch_to_triton.audit.source import lines_of
from pytorch_to_triton.schema.finding import Finding

AROUND = 5
"""Lines that are shown before and after a finding."""
WORTH_FOLDING = 10
"""Fewer lines between findings are shown as well."""


@dataclass(frozen=True)
class LinkedFinding:
    """A finding and the name that links reach it by."""

    finding: Finding
    anchor: str


@dataclass(frozen=True)
class Stretch:
    """Lines that stand in one block of code; from 1, both ends included."""

    first: int
    last: int
    folded: bool

    @property
    def label(self) -> str:
        """`lines 3 to 7`."""
        return f"lines {self.first} to {self.last}" if self.last > self.first else f"line {self.first}"


@dataclass(frozen=True)
class AnnotatedStretch:
    """A stretch with its text, and the findings at its last line."""

    stretch: Stretch
    lines: Sequence[str]
    is_marked: bool
    """Its last line has findings; no other has."""
    entries: Sequence[LinkedFinding]


def annotate(source: str | None, entries: Sequence[LinkedFinding]) -> list[AnnotatedStretch]:
    """A file with its findings below their lines; excerpts alone where the source has no such line."""
    lines = lines_of(source) if source is not None else []
    rows = []
    marked = sorted({entry.finding.line for entry in entries if 1 <= entry.finding.line <= len(lines)})
    for stretch in stretches(len(lines), marked):
        here = [entry for entry in entries if entry.finding.line == stretch.last]
        rows.append(AnnotatedStretch(stretch, lines[stretch.first - 1 : stretch.last], bool(here), here))
    for entry in entries:
        line = entry.finding.line
        if not 1 <= line <= len(lines):
            excerpt = Stretch(line, line, folded=False)
            rows.append(AnnotatedStretch(excerpt, [entry.finding.excerpt], is_marked=True, entries=[entry]))
    return rows


def stretches(count: int, marked: Sequence[int]) -> Iterator[Stretch]:
    """A file of `count` lines in pieces, which end at marked lines and where folding begins or ends."""
    hidden = _foldable(count, marked)
    for folded, run in groupby(range(1, count + 1), key=hidden.__contains__):
        first, *rest = run
        last = rest[-1] if rest else first
        cuts = [line for line in marked if first <= line < last]
        for before, end in pairwise((first - 1, *cuts, last)):
            yield Stretch(before + 1, end, folded)


def _foldable(count: int, marked: Sequence[int]) -> set[int]:
    """The lines in runs without findings that are worth folding."""
    near = {line for mark in marked for line in range(mark - AROUND, mark + AROUND + 1)}
    runs = [list(run) for is_near, run in groupby(range(1, count + 1), near.__contains__) if not is_near]
    return {line for run in runs if len(run) >= WORTH_FOLDING for line in run}
