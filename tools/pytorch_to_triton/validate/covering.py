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
from typing import Any, Generic, Protocol, TypeVar

Level = tuple[str, str]
"""A factor and one of its levels."""
Levels = Mapping[str, str]
"""A level of each factor, by the factor's name; of a row also what follows from them."""
Goal = frozenset[Level]
"""Levels that are to meet in a row: two or three."""
Factors = Mapping[str, Sequence[str]]
Row = TypeVar("Row", covariant=True)
_ORDERS_TRIED = 4
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

    def implied(self, level: Level) -> Collection[Level]:
        """What follows from a level."""

    def place(self, levels: Levels, goal: Goal) -> tuple[Levels, Row] | None:
        """A row that meets the goal, of these levels as far as possible, with the levels that it has.

        None where there is no such row.
        """

    def take(self, levels: Levels, row: Any) -> None:
        """The row is one of the design."""


def cover(space: Space[Row], goals: Iterable[Goal], most: int) -> Design[Row]:
    """At most `most` rows that meet the goals, the first goals first."""
    open_goals = dict.fromkeys(goals)
    progress = _Progress(space, dict(open_goals))
    rows: list[tuple[frozenset[Goal], Row]] = []
    impossible: list[Goal] = []
    while progress.goals and len(rows) < most:
        goal = next(iter(progress.goals))
        tried = (space.place(progress.completed(goal), goal) for _ in range(_ORDERS_TRIED))
        placed = [candidate for candidate in tried if candidate is not None]
        if not placed:
            impossible.append(goal)
            del progress.goals[goal]
            continue
        levels, row = max(placed, key=lambda candidate: progress.gain(candidate[0]))
        progress.meet(levels)
        space.take(levels, row)
        rows.append((frozenset(goal for goal in goals_of(levels) if goal in open_goals), row))
    return Design(tuple(without_redundant(rows)), (*impossible, *progress.goals))


def without_redundant(rows: Sequence[tuple[frozenset[Goal], Row]]) -> list[Row]:
    """The rows, in their order, without those of which others meet every goal too."""
    met = Counter(goal for goals, _ in rows for goal in goals)
    kept = []
    for goals, row in rows:
        if all(met[goal] > 1 for goal in goals):
            met.subtract(goals)
        else:
            kept.append(row)
    return kept


class _Progress:
    """The goals that are still to be met, and how often each level has been taken."""

    def __init__(self, space: Space[Any], goals: dict[Goal, None]) -> None:
        self.space = space
        self.goals = goals
        self._in_triples = {factor for goal in goals if len(goal) > 2 for factor, _ in goal}
        self._taken: Counter[Level] = Counter()
        self._random = Random(0)

    def meet(self, levels: Levels) -> None:
        for goal in goals_of(levels):
            self.goals.pop(goal, None)
        self._taken.update(levels.items())

    def gain(self, levels: Levels) -> int:
        return sum(goal in self.goals for goal in goals_of(levels))

    def completed(self, goal: Goal) -> Levels:
        """The goal's levels, then factor by factor the level that meets most other goals."""
        excluded = self.space.excluded(goal)
        row = {factor: level for factor, level in goal if factor in self.space.factors}
        others = [factor for factor in self.space.factors if factor not in row]
        self._random.shuffle(others)
        for factor in others:
            levels = [(factor, level) for level in self.space.factors[factor]]
            allowed = [level for level in levels if level not in excluded]
            row[factor] = max(allowed or levels, key=lambda level: self._worth(level, row))[1]
        return row

    def _worth(self, level: Level, row: Levels) -> tuple[int, int]:
        """Goals that the level would meet with those of the row; then how seldom it was taken."""
        strong = frozenset(item for item in row.items() if item[0] in self._in_triples)
        gained = [level, *self.space.implied(level)]
        pairs = sum(frozenset((item, other)) in self.goals for item in gained for other in row.items())
        triples = sum(frozenset((item, *strong)) in self.goals for item in gained)
        return pairs + triples, -self._taken[level]


def goals_of(levels: Levels) -> Iterator[Goal]:
    """Every pair and triple that meets in a row."""
    for size in (2, 3):
        yield from map(frozenset, combinations(levels.items(), size))
