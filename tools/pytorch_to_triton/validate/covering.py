"""A covering design: few rows of levels in which all goals, such as every pair of levels, meet.

Greedy, after AETG (Cohen, Dalal, Fredman and Patton, IEEE TSE 23(7), 1997): each row starts from a goal that
no row meets yet and takes, factor by factor, the level that meets most of the others. The packages that make
such arrays take neither goals of several strengths nor levels that stand for whichever of several values
fits.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Generic, Protocol, TypeVar

Level = tuple[str, str]
"""A factor and one of its levels."""
Levels = Mapping[str, str]
"""A level of each factor, by the factor's name; of a row also what follows from them."""
Goal = frozenset[Level]
"""Levels that are to meet in a row: two or three."""
Factors = Mapping[str, Sequence[str]]
Row = TypeVar("Row", covariant=True)
_ORDERS_TRIED = 6
"""Rows that are compared for each goal; each takes its factors in another order."""


@dataclass(frozen=True)
class Design(Generic[Row]):
    """The rows, and the goals that none of them meets."""

    rows: tuple[Row, ...]
    unmet: tuple[Goal, ...]


def every_pair(some: Iterable[Level], others: Iterable[Level]) -> Iterator[Goal]:
    """Each of some levels with each of the others, where they are of different factors."""
    second = list(others)
    return (frozenset((a, b)) for a in some for b in second if a[0] != b[0])


class Space(Protocol[Row]):
    """The levels there are, and the rows that can be made of them."""

    factors: Factors

    def excluded(self, goal: Goal) -> Collection[Level]:
        """Levels that no row which meets the goal has."""

    def place(self, levels: Levels, goal: Goal) -> tuple[Levels, Row] | None:
        """A row that meets the goal, of these levels as far as possible, with the levels that it has.

        None where there is no such row.
        """


def cover(space: Space[Row], goals: Iterable[Goal], most: int) -> Design[Row]:
    """At most `most` rows that meet the goals, the first goals first."""
    progress = _Progress(space.factors, dict.fromkeys(goals))
    rows: list[Row] = []
    impossible: list[Goal] = []
    while progress.goals and len(rows) < most:
        goal = next(iter(progress.goals))
        excluded = space.excluded(goal)
        tried = (space.place(progress.completed(goal, excluded), goal) for _ in range(_ORDERS_TRIED))
        placed = [candidate for candidate in tried if candidate is not None]
        if not placed:
            impossible.append(goal)
            del progress.goals[goal]
            continue
        levels, row = max(placed, key=lambda candidate: progress.gain(candidate[0]))
        progress.meet(levels)
        rows.append(row)
    return Design(tuple(rows), (*impossible, *progress.goals))


class _Progress:
    """The goals that are still to be met, and how often each level has been taken."""

    def __init__(self, factors: Factors, goals: dict[Goal, None]) -> None:
        self.factors = factors
        self.goals = goals
        self._taken: Counter[Level] = Counter()
        self._random = Random(0)

    def meet(self, levels: Levels) -> None:
        for goal in goals_of(levels):
            self.goals.pop(goal, None)
        self._taken.update(levels.items())

    def gain(self, levels: Levels) -> int:
        return sum(goal in self.goals for goal in goals_of(levels))

    def completed(self, goal: Goal, excluded: Collection[Level]) -> Levels:
        """The goal's levels, then factor by factor the level that meets most other goals."""
        row = {factor: level for factor, level in goal if factor in self.factors}
        others = [factor for factor in self.factors if factor not in row]
        self._random.shuffle(others)
        for factor in others:
            levels = [(factor, level) for level in self.factors[factor]]
            allowed = [level for level in levels if level not in excluded]
            row[factor] = max(allowed or levels, key=lambda level: self._worth(level, row))[1]
        return row

    def _worth(self, level: Level, row: Levels) -> tuple[int, int]:
        met = sum(frozenset((level, other)) in self.goals for other in row.items())
        return met, -self._taken[level]


def goals_of(levels: Levels) -> Iterator[Goal]:
    """Every pair and triple that meets in a row."""
    for size in (2, 3):
        yield from map(frozenset, combinations(levels.items(), size))
